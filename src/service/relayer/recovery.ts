import type { Chain } from "../../chain/chain.ts";
import type { FailedSettlement, Recoveries, RecoveryProof, RecoveryState } from "../../ledger/recoveries.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { ServiceLog } from "../../observe/log/logger.ts";
import type { Hex } from "../../protocol/hex.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { growingPause } from "../../util/waiting.ts";
import { classifyFailure, type FailureFinding } from "./classify-failure.ts";
import type { Recoverer } from "./recoverer.ts";

/** Follows up the failed settlements of one network, so that a payment that reached the contract reaches its recipient. */
export type RecoveryLoop = {
  /**
   * Examines a failed settlement, and recovers it if possible. Repeated calls cost no request to the chain while it is
   * in progress, or if the failure is old and final.
   *
   * @throws UndeterminedError when the chain could not be asked or has not decided yet: try again.
   */
  consider(id: Hex): Promise<FollowUp>;
  /** Like {@link consider}, for a failure that was read from the ledger, even if it is not due. Throws alike. */
  followUp(failure: FailedSettlement): Promise<FollowUp>;
  /** The state of a failed settlement when it was last examined. Asks the ledger only. */
  known(id: Hex): Promise<FollowUp>;
  /** Starts examining every failure from time to time, until its authorization can no longer be submitted. */
  start(minedOfRecoverer?: number): Promise<void>;
  /** Waits for examinations in progress. Forwards in flight stay in the ledger. */
  stop(): Promise<void>;
};

/** The number of failures examined at once. */
const looksAtOnce = 50;

/** How long a failure is left to the instance that took it, in milliseconds. It is harmless if two examine it. */
const lookLeaseMs = 10_000;

export function createRecovery(options: RecoveryOptions): RecoveryLoop {
  const { chain, ledger, recoverer, now, log } = options;
  const { network } = chain;
  const { followUp, knownOf, pause } = createFailureFollowUp(options);
  /** Examinations in progress, by settlement. They resolve to undefined if the chain has not decided yet. */
  const looks = new Map<Hex, Promise<FollowUp | undefined>>();
  let round: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  /** Concurrent calls share one examination. */
  function once(id: Hex, look: () => Promise<FollowUp | undefined>): Promise<FollowUp | undefined> {
    const running = looks.get(id);
    if (running !== undefined) return running;
    const started = look().finally(() => looks.delete(id));
    looks.set(id, started);
    return started;
  }

  /** For a request that waits for an answer: throws if the chain has not decided yet. */
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
      // A failure that cannot be decided must not be asked about forever at the pace of a new one.
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
 * The state of a failed settlement.
 * - `failed`: its authorization was not submitted directly, as far as the chain tells;
 * - `expired`: it was never used and no longer can be;
 * - `queued`: it was submitted, and its value waits for an instance that has the recoverer's key;
 * - `under_way`: it was submitted in the given transaction, and its value is being forwarded;
 * - `recovered`: it is no longer failed: read it again.
 */
export type FollowUp =
  | { outcome: "failed" | "expired" | "queued" | "recovered" }
  | { outcome: "under_way"; transaction: Hex };

export type RecoveryOptions = {
  chain: Chain;
  ledger: Recoveries;
  ways: WaysToPay;
  /** If undefined, direct submissions are only queued. */
  recoverer: Recoverer | undefined;
  /** Transactions that the operator has looked up; see {@link classifyFailure}. */
  confirmed?: ReadonlySet<Hex>;
  now: () => number;
  log: ServiceLog;
};

/** Follows up one failure. */
export type FailureFollowUp = {
  /** Examines it and acts on the finding; undefined if the chain has not decided yet. */
  followUp(failure: FailedSettlement): Promise<FollowUp | undefined>;
  /** Its state by the ledger alone. */
  knownOf(failure: FailedSettlement): FollowUp;
  /** Milliseconds until it is examined again. */
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

  /** Drops the queued recovery, if any, of a failure that was not submitted directly as the chain stands now. */
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
    // An unused authorization is checked until it can no longer be used.
    return { outcome: nextLookAt === null && usedByBlock === null ? "expired" : "failed" };
  }

  function stateOf({ state, proof }: { state: RecoveryState; proof: RecoveryProof }): FollowUp {
    // A forward that was sent, by any instance, will soon be mined.
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
