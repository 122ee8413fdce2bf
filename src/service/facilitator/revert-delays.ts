import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Outcomes, PayerAccount, RecentSettles, SettlesOf } from "../../ledger/ledger.ts";
import type { Hex } from "../../protocol/hex.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { sleep } from "../../util/waiting.ts";
import type { Waiting } from "./context.ts";

/**
 * Limits the cost of payers whose settles pass simulation but revert when mined. Nobody is refused, only delayed. A plain account
 * is delayed by its own reverts only. An account with code is also delayed by those of payers with the same code, and of payers
 * with any code, at the same organization, unless its own last settle there succeeded: such a payer skips these delays with one
 * settle at a time.
 */
export type RevertDelays = {
  /** Returns the turn of one payment by a payer to an organization. */
  of(payer: PayerAccount, to: { organizationId: string; network: Pick<NetworkConfig, "name"> }): Turn;
};

export type Turn = {
  /**
   * Waits until a payment may be claimed. Returns true if that took so long that earlier chain reads are stale. A
   * second call with the same code does not wait.
   *
   * @param payerCode the hash of the payer's code, null for a plain account
   * @throws UndeterminedError when it would not be sent in time; nothing was signed then
   */
  take(payerCode: Hex | null, waiting: Waiting): Promise<boolean>;
  /** Ends the settle; `isSuspect` is true if it reverted or still may. */
  end(isSuspect: boolean): void;
};

/** Chain reads older than this are repeated. */
const oldMs = 500;
/** Suspected payers remembered at a time; the oldest one is dropped. */
const mostPayers = 10_000;
/** Waiting payments of one organization in this process. */
const mostWaiting = 200;

/** Settles in flight allowed for unknown code; the number grows as they succeed. */
const fewUnderWay = 8;
const mostUnderWay = 256;

export function createRevertDelays(
  outcomes: Pick<Outcomes, "recentSettles" | "hasPaidLast">,
  now: () => number,
): RevertDelays {
  const gates = new Map<string, Gate>();
  /**
   * Payers seen to revert, with the time in unix milliseconds. Only these are looked up by account, so others cost no query.
   */
  const suspects = new Map<string, number>();
  const waitingOf = new Map<string, number>();
  /** Payers with a settle in flight that has skipped the delays caused by others. */
  const passing = new Set<string>();

  function gateOf(key: string, of: SettlesOf): Gate {
    const known = gates.get(key);
    if (known !== undefined) return known;
    const gate = createGate({
      read: () => outcomes.recentSettles(of, now() - windowMs),
      most: of.kind === "payer" ? () => Number.POSITIVE_INFINITY : mostOfCode,
      why: reasons[of.kind],
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
      /** The code with which this payment skips the delays caused by others. */
      let passesWith: Hex | undefined;

      function keysOf(payerCode: Hex | null): [string, SettlesOf][] {
        const keys: [string, SettlesOf][] = isSuspected(name) ? [[name, { kind: "payer", ...payer }]] : [];
        if (payerCode === null || payerCode === passesWith) return keys;
        const organization = { organizationId, network: network.name };
        const key = `${organizationId} ${network.name}`;
        return [
          ...keys,
          [`${key} ${payerCode}`, { kind: "code", ...organization, payerCode }],
          [key, { kind: "organization", ...organization }],
        ];
      }

      /**
       * Returns true if this payment may skip the delays caused by others. A revert ends that: the payer's last
       * settle has failed then.
       */
      async function tryToPass(payerCode: Hex | null): Promise<boolean> {
        if (payerCode === null || passesWith !== undefined || passing.has(name)) return false;
        if (!(await outcomes.hasPaidLast(payer, { organizationId, payerCode }))) return false;
        // Another payment of the same payer may have asked meanwhile.
        if (passing.has(name)) return false;
        passing.add(name);
        passesWith = payerCode;
        return true;
      }

      /**
       * Enters all gates or none, so that nobody waits at one gate while holding room in another. Returns the index
       * of the full one, or -1.
       */
      async function tryAll(keys: [string, SettlesOf][], waiting: Waiting): Promise<number> {
        for (const [index, [key, of]] of keys.entries()) {
          if (entered.has(key)) continue;
          const gate = gateOf(key, of);
          if (!(await gate.tryToEnter(waiting, isSuspected(name)))) {
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
          let keys = keysOf(payerCode);
          if (keys.every(([key]) => entered.has(key))) return false;
          const startedAt = now();
          for (let hasWaited = false; ; hasWaited = true) {
            const full = keys[await tryAll(keys, waiting)];
            if (full === undefined) return now() - startedAt > oldMs;
            // Two payments that each hold what the other waits for would swap it back and forth, forever if the
            // ledger answers at once.
            if (hasWaited) await sleep(lookEveryMs, waiting.signal);
            const [key, of] = full;
            if (of.kind !== "payer" && (await tryToPass(payerCode))) {
              keys = keysOf(payerCode);
              continue;
            }
            const gate = gateOf(key, of);
            await gate.enter(waiting, roomOf(organizationId), isSuspected(name));
            entered.set(key, gate);
          }
        },

        end(isSuspect) {
          leaveAll();
          if (passesWith !== undefined) passing.delete(name);
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

/**
 * Limits how many settles of one kind are in flight, by how earlier ones went. Each instance has its own gates, but all count
 * in the ledger. Only settles that instances let through at the same moment can exceed the limit, at most once per instance.
 */
export type Gate = {
  /**
   * Waits until there is room, and takes it.
   *
   * @param waitingRoom of the organization that is paid
   * @param isSuspect true if the payer has reverted recently: all others enter before it
   * @throws UndeterminedError when there is no room in time, or too many payments of the organization wait.
   */
  enter(waiting: Waiting, waitingRoom: WaitingRoom, isSuspect: boolean): Promise<void>;
  /** Takes room if there is any; does not wait. */
  tryToEnter(waiting: Waiting, isSuspect: boolean): Promise<boolean>;
  /** Gives the room back, once the outcome of the settle is known or nobody waits for it. */
  leave(): void;
};

export type GateOptions = {
  /** Reads how the settles of the last {@link windowMs} went. */
  read: () => Promise<RecentSettles>;
  /** How many may be in flight while hardly any revert. */
  most: (recent: RecentSettles) => number;
  /** The reason for the delay, as told to the caller. */
  why: string;
  now: () => number;
  /** Called when no settle is inside and none waits. */
  empty: () => void;
};

/** Limits how many payments of an organization wait at all gates together; `take` is false if there is no room. */
export type WaitingRoom = { take(): boolean; giveBack(): void };

/** How long reverts count. A success does not end that. */
export const windowMs = 600_000;

/** Reverts that may be accidents: a balance spent elsewhere, a wallet that was changed. */
const freeReverts = 3;
/** This many successes offset one more revert. */
const successesPerRevert = 4;
const firstDelayMs = 1_000;
const longestDelayMs = 32_000;

/** How often the ledger is read again: other instances let payments through and decide them too. */
const lookEveryMs = 250;

type Waiter = {
  waiting: Waiting;
  /** Undefined if it does not wait. */
  waitingRoom: WaitingRoom | undefined;
  isSuspect: boolean;
  hasPlace: boolean;
  end(result: boolean | Error): void;
};

export function createGate({ read, most, why, now, empty }: GateOptions): Gate {
  const queue = new Set<Waiter>();
  let inside = 0;
  let isLooking = false;
  let pause: AbortController | undefined;

  /** How many more may enter now, and the earliest time at which one may. */
  function measure(recent: RecentSettles): { room: number; notBefore: number } {
    const taken = Math.max(recent.underWay, inside);
    const excess = recent.reverted - freeReverts - Math.floor(recent.settled / successesPerRevert);
    if (excess <= 0) return { room: most(recent) - taken, notBefore: 0 };
    const delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(excess - 1, 20));
    const notBefore = (recent.lastRevertedAt ?? 0) + delayMs;
    return { room: now() < notBefore ? 0 : 1 - taken, notBefore };
  }

  async function look(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    try {
      while (queue.size > 0) {
        const recent = await read();
        let { room, notBefore } = measure(recent);
        // Payers who reverted keep coming back, and would be ahead of everybody who comes for the first time.
        for (const waiter of [...queue].sort((a, b) => Number(a.isSuspect) - Number(b.isSuspect))) {
          if (room > 0) {
            room--;
            inside++;
            waiter.end(true);
          } else if (waiter.waitingRoom === undefined) waiter.end(false);
          else if (notBefore >= waiter.waiting.deadline) waiter.end(late());
          else if (!waiter.hasPlace && !waiter.waitingRoom.take()) waiter.end(crowded());
          else waiter.hasPlace = true;
        }
        if (queue.size === 0) break;
        pause = new AbortController();
        await sleep(lookEveryMs, pause.signal);
      }
    } catch (error) {
      for (const waiter of queue) waiter.end(error instanceof Error ? error : new Error(String(error)));
    } finally {
      isLooking = false;
      clearAway();
    }
  }

  function clearAway(): void {
    if (inside === 0 && queue.size === 0 && !isLooking) empty();
  }

  async function join(waiting: Waiting, isSuspect: boolean, waitingRoom?: WaitingRoom): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const waiter: Waiter = {
      waiting,
      waitingRoom,
      isSuspect,
      hasPlace: false,
      end(result) {
        queue.delete(waiter);
        if (waiter.hasPlace) waitingRoom?.giveBack();
        clearTimeout(timer);
        waiting.signal.removeEventListener("abort", leaveQueue);
        if (result instanceof Error) reject(result);
        else resolve(result);
      },
    };
    const leaveQueue = () => {
      waiter.end(
        waiting.signal.aborted ? new UndeterminedError("The caller left; nothing was sent") : late(),
      );
      pause?.abort();
    };
    const timer = setTimeout(leaveQueue, Math.max(0, waiting.deadline - now()));
    waiting.signal.addEventListener("abort", leaveQueue);
    queue.add(waiter);
    if (waiting.signal.aborted) leaveQueue();
    void look();
    return promise;
  }

  const late = () =>
    new UndeterminedError(
      `${why}, so further ones are delayed, and this one would not be sent in time; nothing was sent, try again later`,
    );

  return {
    async enter(waiting, waitingRoom, isSuspect) {
      await join(waiting, isSuspect, waitingRoom);
    },
    tryToEnter: (waiting, isSuspect) => join(waiting, isSuspect),
    leave() {
      inside--;
      pause?.abort();
      clearAway();
    },
  };
}

function crowded(): UndeterminedError {
  return new UndeterminedError(
    "Too many payments to this organization wait for others that have to be decided first; nothing was sent, try again",
  );
}
