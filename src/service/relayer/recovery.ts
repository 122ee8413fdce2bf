import type { FailedSettlement } from "../../ledger/recoveries.ts";
import type { Hex } from "../../protocol/hex.ts";
import { UndeterminedError } from "../../util/errors.ts";
import {
  createFailureFollowUp,
  type FollowUp,
  type RecoveryOptions,
  roundEveryBlocks,
} from "./failure-follow-up.ts";

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
