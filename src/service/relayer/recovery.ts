import type { Chain } from "../../chain/chain.ts";
import type { FailedSettlement, Recoveries, RecoveryProof, RecoveryState } from "../../ledger/recoveries.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { ServiceLog } from "../../observe/log/logger.ts";
import type { Hex } from "../../protocol/hex.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { growingPause } from "../../util/waiting.ts";
import { classifyFailure, type FailureFinding } from "./classify-failure.ts";
import type { Recoverer } from "./recoverer.ts";

/** Follows up the failed settlements of one network: a payment that reached the contract reaches its recipient. */
export type RecoveryLoop = {
  /**
   * Looks at a settlement that failed, and recovers it if it may. Asking again while it is under way costs the chain
   * nothing, nor does asking about an old failure that cannot change any more.
   *
   * @throws UndeterminedError when the chain could not be asked or has not decided yet: worth asking again.
   */
  consider(id: Hex): Promise<FollowUp>;
  /** The same for a failure that was read from the ledger, even if it is not due. Throws alike. */
  followUp(failure: FailedSettlement): Promise<FollowUp>;
  /** How a failed settlement stood when it was last looked at. Asks the ledger alone. */
  known(id: Hex): Promise<FollowUp>;
  /** From now on looks at every failure from time to time, until its authorization cannot be submitted any more. */
  start(minedOfRecoverer?: number): Promise<void>;
  /** Lets what has begun end. What is in flight stays in the ledger. */
  stop(): Promise<void>;
};

/** Failures that are looked at together. */
const looksAtOnce = 50;

/** How long a failure is left to the instance that took it, in milliseconds: should two look, no harm is done. */
const lookLeaseMs = 10_000;

export function createRecovery(options: RecoveryOptions): RecoveryLoop {
  const { chain, ledger, recoverer, now, log } = options;
  const { network } = chain;
  const { followUp, knownOf, pause } = createFailureFollowUp(options);
  /** Looks under way, by settlement. Undefined is what the chain has not decided yet. */
  const looks = new Map<Hex, Promise<FollowUp | undefined>>();
  let round: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  /** Calls at the same time share one look. */
  function once(id: Hex, look: () => Promise<FollowUp | undefined>): Promise<FollowUp | undefined> {
    const running = looks.get(id);
    if (running !== undefined) return running;
    const started = look().finally(() => looks.delete(id));
    looks.set(id, started);
    return started;
  }

  /** For a request that waits for an answer. */
  async function decided(look: Promise<FollowUp | undefined>): Promise<FollowUp> {
    const followUp = await look;
    if (followUp !== undefined) return followUp;
    throw new UndeterminedError(
      "The authorization was used; whether for this payment shows when the block is deeper",
    );
  }

  async function consider(id: Hex): Promise<FollowUp | undefined> {
    const failure = await ledger.findFailure(id);
    if (failure === null) return { outcome: "recovered" };
    const { recovery, nextLookAt } = failure;
    const isPutOff = nextLookAt === null || nextLookAt > now();
    if (recovery === null) return nextLookAt === null ? knownOf(failure) : followUp(failure);
    if (recovery.state === "queued" && !(recovery.problem !== null && isPutOff)) return followUp(failure);
    return knownOf(failure);
  }

  async function lookAtDue(): Promise<void> {
    try {
      for (let more = true; more && !stopped; ) {
        const due = await ledger.takeDueFailures(network.chainId, looksAtOnce, now() + lookLeaseMs);
        more = due.length === looksAtOnce;
        await Promise.all(due.map(lookOrPutOff));
      }
    } catch (error) {
      log.warn(
        { network: network.name, err: error },
        "failed settlements could not be checked for recovery; trying again",
      );
    }
  }

  async function lookOrPutOff(failure: FailedSettlement): Promise<void> {
    const { id } = failure.settlement;
    try {
      await once(id, () => followUp(failure));
    } catch (error) {
      // One that nothing can be learnt of must not be asked about for ever as if it were new.
      log.warn(
        { network: network.name, settlement: id, err: error },
        "how a failed payment stands could not be decided; looking again later",
      );
      const { usedByBlock } = failure;
      await ledger.noteLook(id, { usedByBlock, nextLookAt: now() + pause(failure) });
    }
  }

  function continueLater(): void {
    timer = setTimeout(() => {
      round = lookAtDue().then(() => {
        if (!stopped) continueLater();
      });
    }, roundEveryBlocks * network.blockTimeMs).unref();
  }

  return {
    consider: (id) => decided(once(id, () => consider(id))),

    followUp: (failure) => decided(once(failure.settlement.id, () => followUp(failure))),

    async known(id) {
      const failure = await ledger.findFailure(id);
      return failure === null ? { outcome: "recovered" } : knownOf(failure);
    },

    async start(minedOfRecoverer) {
      await recoverer?.start(minedOfRecoverer);
      if (timer === undefined) continueLater();
    },

    async stop() {
      stopped = true;
      clearTimeout(timer);
      await round;
      await Promise.allSettled(looks.values());
      await recoverer?.stop();
    },
  };
}

/**
 * How a failed settlement stands.
 * - `failed`: its authorization was not submitted directly, as far as the chain tells;
 * - `expired`: nor can it be any more, and it never was used;
 * - `queued`: it was, and its value waits for an instance that has the recoverer's key;
 * - `under_way`: it was, in the given transaction, and its value is being forwarded;
 * - `recovered`: it has not failed any more: read it again.
 */
export type FollowUp =
  | { outcome: "failed" | "expired" | "queued" | "recovered" }
  | { outcome: "under_way"; transaction: Hex };

export type RecoveryOptions = {
  chain: Chain;
  ledger: Recoveries;
  ways: WaysToPay;
  /** Without one, what is found is queued. */
  recoverer: Recoverer | undefined;
  /** Transactions that the operator has looked up; see {@link classifyFailure}. */
  confirmed?: ReadonlySet<Hex>;
  now: () => number;
  log: ServiceLog;
};

/** Follows one failure up. */
export type FailureFollowUp = {
  /** Looks, and does what follows from it; undefined is what the chain has not decided yet. */
  followUp(failure: FailedSettlement): Promise<FollowUp | undefined>;
  /** How it stands, without a look at the chain. */
  knownOf(failure: FailedSettlement): FollowUp;
  /** Milliseconds until the next look. */
  pause(failure: FailedSettlement): number;
};

/** Block times between two rounds. */
export const roundEveryBlocks = 2;

export function createFailureFollowUp(options: RecoveryOptions): FailureFollowUp {
  const { chain, ledger, ways, recoverer, confirmed, now, log } = options;
  const { network } = chain;

  async function followUp(failure: FailedSettlement): Promise<FollowUp | undefined> {
    const look = await classifyFailure({ chain, ways, now }, failure, confirmed);
    switch (look.kind) {
      case "submitted":
        return recover(failure, look);
      case "recent": {
        const { usedByBlock } = look;
        await ledger.noteLook(failure.settlement.id, {
          usedByBlock,
          nextLookAt: now() + network.blockTimeMs,
        });
        return undefined;
      }
      case "paid": {
        const { kind, ...mined } = look.payout;
        const { id } = failure.settlement;
        log.warn(
          { network: network.name, settlement: id, hash: mined.hash },
          "a failed payment was paid by another transaction: one of ours whose receipt was not seen, or that of somebody else",
        );
        await ledger.correctFailure(id, kind === "settled" ? "settled" : "recovered", mined);
        return { outcome: "recovered" };
      }
      case "disputed":
        throw new UndeterminedError(look.problem);
      case "undone":
        await dropVanished(failure);
        return undefined;
      case "unused":
      case "spent": {
        const { id } = failure.settlement;
        await dropVanished(failure);
        await ledger.noteLook(id, {
          usedByBlock: look.kind === "spent" ? look.usedByBlock : null,
          nextLookAt: look.over ? null : now() + pause(failure),
        });
        return { outcome: look.kind === "unused" && look.over ? "expired" : "failed" };
      }
    }
  }

  /** A failure that is queued and was not submitted directly, as the chain stands now. */
  async function dropVanished({ settlement: { id }, recovery }: FailedSettlement): Promise<void> {
    if (recovery === null) return;
    log.warn({ network: network.name, settlement: id }, "the block of a direct submission has vanished");
    await ledger.dropRecovery(id);
  }

  async function recover(
    failure: FailedSettlement,
    { proof, obstacle }: Extract<FailureFinding, { kind: "submitted" }>,
  ): Promise<FollowUp> {
    const { settlement, usedByBlock, recovery } = failure;
    const { id } = settlement;
    const about = { network: network.name, settlement: id, submittedIn: proof.transactionHash };
    if (recovery === null)
      log.warn(about, "the authorization of a payment was submitted directly to the token");
    await ledger.queueRecovery(id, proof);
    const nextLookAt = now() + pause(failure);
    if (recoverer === undefined) {
      await ledger.noteLook(id, { usedByBlock, nextLookAt });
    } else {
      try {
        if (obstacle !== undefined) throw new UndeterminedError(`It cannot be forwarded now: ${obstacle}`);
        await recoverer.forward(settlement);
      } catch (error) {
        log.error({ ...about, err: error }, "a payment cannot be recovered now; trying again");
        const problem = error instanceof KitError ? error.message : "an unforeseen error; see the log";
        await ledger.postponeRecovery(id, problem, nextLookAt);
      }
    }
    return stateOf({ state: "queued", proof });
  }

  function knownOf({ recovery, nextLookAt, usedByBlock }: FailedSettlement): FollowUp {
    if (recovery !== null) return stateOf(recovery);
    // What is unused is looked at until nobody can use it any more.
    return { outcome: nextLookAt === null && usedByBlock === null ? "expired" : "failed" };
  }

  function stateOf({ state, proof }: { state: RecoveryState; proof: RecoveryProof }): FollowUp {
    // What is sent already is soon there, by whichever instance.
    return state === "queued" && recoverer === undefined
      ? { outcome: "queued" }
      : { outcome: "under_way", transaction: proof.transactionHash };
  }

  function pause({ settlement: { concludedAt } }: FailedSettlement): number {
    const age = concludedAt === null ? 0 : now() - concludedAt;
    return growingPause(age, roundEveryBlocks * network.blockTimeMs);
  }

  return { followUp, knownOf, pause };
}
