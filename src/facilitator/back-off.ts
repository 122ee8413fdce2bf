import { UndeterminedError } from "../errors.ts";
import type { Ledger, PayerAccount } from "../ledger/ledger.ts";
import { sleep } from "../relayer/poll.ts";
import type { Waiting } from "./claim-payment.ts";

/**
 * Spaces out the payments of payers whose settles were reverted lately: the operator pays for each. They are never
 * refused, only later. How many were reverted is read from the ledger, so that all instances count alike; it is read only
 * for payers that this instance suspects.
 */
export type BackOff = {
  /**
   * Waits for the payer's turn.
   *
   * @throws UndeterminedError when it does not come in time; nothing was signed then.
   */
  turn(payer: PayerAccount, waiting: Waiting): Promise<void>;
  /** A settle of theirs was reverted, or may yet be. */
  suspect(payer: PayerAccount): void;
};

type Suspect = {
  /** While the ledger is asked. */
  lookingUp?: Promise<readonly number[]> | undefined;
  /** Unix milliseconds, both. */
  nextTurnAt: number;
  suspectedAt: number;
};

/** Reverts that may be mishaps: a balance that went elsewhere, a wallet that was changed. */
const freeReverts = 3;
const firstDelayMs = 1_000;
const longestDelayMs = 8_000;
/** More reverts change nothing. */
const mostCounted = freeReverts + 1 + Math.log2(longestDelayMs / firstDelayMs);
/** After so long without a revert a payer begins anew. */
const forgottenMs = 600_000;
/** Payers remembered at a time; the one that was quiet for longest makes room. */
const mostPayers = 10_000;

export function createBackOff(ledger: Pick<Ledger, "lastReverts">, now: () => number): BackOff {
  const suspects = new Map<string, Suspect>();

  /** Many turns of one payer may ask at the same time: it is looked up once for them. */
  function lookUp(payer: PayerAccount, suspect: Suspect): Promise<readonly number[]> {
    suspect.lookingUp ??= ledger.lastReverts(payer, mostCounted).finally(() => {
      suspect.lookingUp = undefined;
    });
    return suspect.lookingUp;
  }

  /** How many follow each other, newest first, without a pause after which they are forgotten. */
  function countLate(reverts: readonly number[]): number {
    const paused = reverts.findIndex((at, index) => (reverts[index - 1] ?? now()) - at > forgottenMs);
    return paused === -1 ? reverts.length : paused;
  }

  return {
    async turn(payer, { deadline, signal }) {
      const suspect = suspects.get(nameOf(payer));
      if (suspect === undefined || now() - suspect.suspectedAt > forgottenMs) return;
      const reverts = await lookUp(payer, suspect);
      const [revertedAt = 0] = reverts;
      const excess = countLate(reverts) - freeReverts;
      if (excess <= 0) return;
      const delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** (excess - 1));
      const at = Math.max(now(), suspect.nextTurnAt, revertedAt + delayMs);
      if (at >= deadline) {
        throw new UndeterminedError(
          "Recent settles of this payer reverted, so further ones are delayed, and this one would not be sent in time; nothing was sent, try again later",
        );
      }
      suspect.nextTurnAt = at + delayMs;
      await sleep(at - now(), signal);
      if (signal.aborted) throw new UndeterminedError("The caller left; nothing was sent");
    },

    suspect(payer) {
      const name = nameOf(payer);
      const suspect = suspects.get(name) ?? { nextTurnAt: 0, suspectedAt: 0 };
      suspect.suspectedAt = now();
      suspects.delete(name);
      suspects.set(name, suspect);
      const [oldest] = suspects.keys();
      if (suspects.size > mostPayers && oldest !== undefined) suspects.delete(oldest);
    },
  };
}

function nameOf({ chainId, asset, payer }: PayerAccount): string {
  return `${chainId} ${asset} ${payer}`.toLowerCase();
}
