import type { NetworkConfig } from "../../config/network-config.ts";
import type { Outcomes, PayerAccount, RecentSettles, SettlesOf } from "../../ledger/ledger.ts";
import type { Hex } from "../../protocol/hex.ts";
import { createGate, type Gate, type WaitingRoom, windowMs } from "./gate.ts";
import type { Waiting } from "./waiting.ts";

/**
 * Bounds what payers cost whose settles pass their simulation and revert when they are mined. Nobody is refused, only
 * delayed. A plain account is delayed by its own reverts alone; one with code also by those of payers with the same code,
 * and by those of an organization's payers with code.
 */
export type Turns = {
  /** The turn of one payment of a payer to an organization. */
  of(payer: PayerAccount, to: { organizationId: string; network: Pick<NetworkConfig, "name"> }): Turn;
};

export type Turn = {
  /**
   * Waits until a payment may be claimed: whether that took so long that what was read of the chain is old. Asked again
   * with the same code, it waits no more.
   *
   * @param payerCode the hash of the payer's code, null for a plain account
   * @throws UndeterminedError when it would not be sent in time; nothing was signed then
   */
  take(payerCode: Hex | null, waiting: Waiting): Promise<boolean>;
  /** The settle has ended; `isSuspect` where it was reverted, or may yet be. */
  end(isSuspect: boolean): void;
};

/** What was read longer ago is read again. */
const oldMs = 500;
/** Payers remembered at a time; the one that was quiet for longest makes room. */
const mostPayers = 10_000;
/** Of one organization, in this process. */
const mostWaiting = 200;

/** Code that is not known has so few settles under way, and more as they succeed. */
const fewUnderWay = 8;
const mostUnderWay = 256;

export function createTurns(outcomes: Pick<Outcomes, "recentSettles">, now: () => number): Turns {
  const gates = new Map<string, Gate>();
  /** Plain accounts are looked up only if they were seen to revert, so that others cost no query. In unix milliseconds. */
  const suspects = new Map<string, number>();
  const waitingOf = new Map<string, number>();

  function gateOf(key: string, of: SettlesOf, waitingRoom: WaitingRoom): Gate {
    const known = gates.get(key);
    if (known !== undefined) return known;
    const gate = createGate({
      read: () => outcomes.recentSettles(of, now() - windowMs),
      most: of.kind === "payer" ? () => Number.POSITIVE_INFINITY : mostOfCode,
      why: reasons[of.kind],
      waitingRoom,
      now,
      empty: () => gates.delete(key),
    });
    gates.set(key, gate);
    return gate;
  }

  function roomOf(organizationId: string): WaitingRoom {
    const change = (by: number) => {
      const count = (waitingOf.get(organizationId) ?? 0) + by;
      if (count > 0) waitingOf.set(organizationId, count);
      else waitingOf.delete(organizationId);
    };
    return {
      take() {
        if ((waitingOf.get(organizationId) ?? 0) >= mostWaiting) return false;
        change(1);
        return true;
      },
      giveBack: () => change(-1),
    };
  }

  function isSuspected(name: string): boolean {
    const suspectedAt = suspects.get(name);
    return suspectedAt !== undefined && now() - suspectedAt <= windowMs;
  }

  function suspect(name: string): void {
    suspects.delete(name);
    suspects.set(name, now());
    const [oldest] = suspects.keys();
    if (suspects.size > mostPayers && oldest !== undefined) suspects.delete(oldest);
  }

  return {
    of(payer, { organizationId, network }) {
      const name = `${payer.chainId} ${payer.asset} ${payer.payer}`.toLowerCase();
      const entered = new Map<string, Gate>();

      function keysOf(payerCode: Hex | null): [string, SettlesOf][] {
        const keys: [string, SettlesOf][] = isSuspected(name) ? [[name, { kind: "payer", ...payer }]] : [];
        if (payerCode === null) return keys;
        const { chainId } = payer;
        return [
          ...keys,
          [`${chainId} ${payerCode}`, { kind: "code", chainId, payerCode }],
          [
            `${organizationId} ${network.name}`,
            { kind: "organization", organizationId, network: network.name },
          ],
        ];
      }

      /** Enters all, or none: nobody waits at one gate with the room of another. Gives the one without room. */
      async function tryAll(keys: [string, SettlesOf][], waiting: Waiting): Promise<number> {
        for (const [index, [key, of]] of keys.entries()) {
          if (entered.has(key)) continue;
          const gate = gateOf(key, of, roomOf(organizationId));
          if (!(await gate.tryToEnter(waiting))) {
            leaveAll();
            return index;
          }
          entered.set(key, gate);
        }
        return -1;
      }

      function leaveAll(): void {
        for (const gate of entered.values()) gate.leave();
        entered.clear();
      }

      return {
        async take(payerCode, waiting) {
          const keys = keysOf(payerCode);
          if (keys.every(([key]) => entered.has(key))) return false;
          const startedAt = now();
          for (;;) {
            const full = keys[await tryAll(keys, waiting)];
            if (full === undefined) return now() - startedAt > oldMs;
            const [key, of] = full;
            const gate = gateOf(key, of, roomOf(organizationId));
            await gate.enter(waiting);
            entered.set(key, gate);
          }
        },

        end(isSuspect) {
          leaveAll();
          if (isSuspect) suspect(name);
        },
      };
    },
  };
}

function mostOfCode({ settled }: RecentSettles): number {
  return Math.min(fewUnderWay + settled, mostUnderWay);
}

const reasons = {
  payer: "Recent settles of this payer reverted",
  code: "Recent settles of payers with the same code reverted, or many are under way",
  organization: "Recent settles of payers with code reverted, or many are under way",
} as const satisfies Record<SettlesOf["kind"], string>;
