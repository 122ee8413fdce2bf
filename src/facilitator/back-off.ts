import { UndeterminedError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hex } from "../protocol/hex.ts";
import { sleep } from "../relayer/poll.ts";
import type { Waiting } from "./claim-payment.ts";

/**
 * Spaces out the payments of payers whose settles were reverted lately: the operator pays for each. They are never
 * refused, only later.
 */
export type BackOff = {
  /**
   * Waits for the payer's turn; `payer` names it together with its network.
   *
   * @throws UndeterminedError when it does not come in time; nothing was signed then.
   */
  turn(payer: string, waiting: Waiting): Promise<void>;
  /** What a settlement of theirs came to; what is not decided yet is looked up at the next turn. */
  note(payer: string, id: Hex, outcome: "paid" | "reverted" | "undecided"): void;
};

type PayerHistory = {
  /** Settlements whose outcome has not been looked up. */
  open: Hex[];
  /** While they are being looked up. */
  lookingUp?: Promise<void> | undefined;
  reverts: number;
  /** Unix milliseconds. */
  nextTurnAt: number;
  revertedAt: number;
};

/** Reverts that may be mishaps: a balance that went elsewhere, a wallet that was changed. */
const freeReverts = 3;
const firstDelayMs = 1_000;
const longestDelayMs = 8_000;
/** After so long without a revert a payer begins anew. */
const forgottenMs = 600_000;
/** Payers remembered at a time; the one that was quiet for longest makes room. */
const mostPayers = 10_000;
/** Settlements under way that are remembered of one payer. */
const mostOpen = 64;

export function createBackOff(ledger: Pick<Ledger, "find">, now: () => number): BackOff {
  const payers = new Map<string, PayerHistory>();

  /** Many turns of one payer may ask at the same time: it is looked up once for them. */
  function lookUp(history: PayerHistory): Promise<void> {
    history.lookingUp ??= countDecided(history).finally(() => {
      history.lookingUp = undefined;
    });
    return history.lookingUp;
  }

  /** Counts what has become of settlements that were undecided when their requests ended. */
  async function countDecided(history: PayerHistory): Promise<void> {
    const found = await Promise.all(
      history.open.map(async (id) => ({ id, settlement: await ledger.find(id) })),
    );
    const decided = found.filter(({ settlement }) => settlement?.state !== "submitted");
    history.open = history.open.filter((id) => decided.every((one) => one.id !== id));
    for (const { settlement } of decided) {
      if (settlement !== null)
        count(history, settlement.state === "failed" ? "reverted" : "paid", settlement.concludedAt);
    }
  }

  /** A payer that has paid begins anew. */
  function count(history: PayerHistory, outcome: "paid" | "reverted", at: number | null): void {
    if (outcome === "paid") history.reverts = 0;
    else {
      history.reverts++;
      history.revertedAt = at ?? now();
    }
  }

  return {
    async turn(payer, { deadline, signal }) {
      const history = payers.get(payer);
      if (history === undefined) return;
      await lookUp(history);
      if (now() - history.revertedAt > forgottenMs) history.reverts = 0;
      const excess = history.reverts - freeReverts;
      if (excess <= 0) return;
      const delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** (excess - 1));
      const at = Math.max(now(), history.nextTurnAt, history.revertedAt + delayMs);
      if (at >= deadline) {
        throw new UndeterminedError(
          "Settles of this payer were reverted lately, and its turn does not come in time; nothing was sent, try again",
        );
      }
      history.nextTurnAt = at + delayMs;
      await sleep(at - now(), signal);
      if (signal.aborted) throw new UndeterminedError("The caller left; nothing was sent");
    },

    note(payer, id, outcome) {
      const known = payers.get(payer);
      if (known === undefined && outcome === "paid") return;
      const history = known ?? { open: [], reverts: 0, nextTurnAt: 0, revertedAt: 0 };
      if (outcome === "undecided") history.open = [...history.open, id].slice(-mostOpen);
      else count(history, outcome, now());
      payers.delete(payer);
      payers.set(payer, history);
      const [oldest] = payers.keys();
      if (payers.size > mostPayers && oldest !== undefined) payers.delete(oldest);
    },
  };
}
