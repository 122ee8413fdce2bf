import { leastTransactionCount } from "../../chain/chain.ts";
import type { ServiceLog } from "../../observe/log/logger.ts";
import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { type OperatorError, UndeterminedError } from "../../util/errors.ts";
import { createDispatcher, type Dispatcher } from "./dispatcher.ts";
import type { RecovererOptions } from "./recoverer.ts";
import { closeEmpty, createFill, createReplace } from "./replacement.ts";
import { codesOf, type TransactionStore } from "./slot.ts";
import { createSubmissionQueue, type Submission, type SubmissionOutcome } from "./submission-queue.ts";
import { createWatcher } from "./watcher.ts";

/**
 * True if one operator can settle, by what its last payments came to: known at once, and before the next inspection of
 * the network.
 */
export type OperatorHealth = {
  /** Returns true if a payment should rather go to another operator: it cannot settle, and was tried lately. */
  isAvoided(): boolean;
  /** It could not settle a payment. Logged once for each problem. */
  failed(error: OperatorError): void;
  /** It has signed for a payment. */
  worked(): void;
};

/** After so long, in milliseconds, one payment tries again whether an operator can settle. */
const tryAgainMs = 30_000;

export function createOperatorHealth(options: {
  network: NetworkName;
  operator: Address;
  now: () => number;
  log: ServiceLog;
}): OperatorHealth {
  const { network, operator, now, log } = options;
  let trouble: { problem: string; until: number } | undefined;
  return {
    isAvoided: () => trouble !== undefined && now() < trouble.until,
    failed({ problem, hints }) {
      if (trouble?.problem !== problem) {
        log.error({ network, operator, advice: hints.join("; ") }, `an operator cannot settle: ${problem}`);
      }
      trouble = { problem, until: now() + tryAgainMs };
    },
    worked() {
      if (trouble !== undefined) log.info({ network, operator }, "an operator can settle again");
      trouble = undefined;
    },
  };
}

/** Sends the settlements of one operator key on one network. */
export type Relayer = {
  readonly operator: Address;
  submit(submission: Submission): Promise<SubmissionOutcome>;
  /**
   * Transactions that no block is known to hold, payments that wait for their turn, unsigned, those of the
   * transactions that a block held which has vanished from the chain, those that too few RPC endpoints confirm, and those
   * that are mined and prove nothing.
   */
  load(): {
    transactions: number;
    queued: number;
    vanished: number;
    unconfirmed: number;
    unproven: number;
  };
  readonly health: OperatorHealth;
  /**
   * Introduces the operator to the ledger and takes up what an earlier process left in flight. Until then nothing is
   * taken.
   *
   * @param mined how many of its transactions are mined, where that is known; the chain is asked otherwise
   */
  start(mined?: number): Promise<void>;
  /** Takes no more submissions and waits for what is being signed. What is in flight stays in the ledger. */
  stop(): Promise<void>;
};

export type RelayerOptions = RecovererOptions & {
  /** Unmined transactions at a time; nodes guarantee an account no more than 16. */
  maxInFlight?: number;
  /** Payments in one transaction. */
  maxBatch?: number;
};

/**
 * One lane: sign, persist, broadcast, one transaction after the other, so that they reach the node in the order of
 * their txNonces; the next is signed and stored while the one before is on its way to the node. What arrives in the
 * meantime waits in a queue and leaves together. While nothing is under way, and the one before it came alone, a payment
 * leaves at once. Otherwise it waits for a full batch, or for a hundredth of a block time; a lone one no longer than
 * something is under way.
 */
export function createRelayer(options: RelayerOptions): Relayer {
  const { chain, signer, ledger, ways, outcomes, now, log, maxInFlight = 16, maxBatch = 50 } = options;
  const { network } = chain;
  let started = false;
  let stopped = false;

  const queue = createSubmissionQueue({
    chain,
    ways,
    now,
    maxBatch,
    operator: signer.address,
    flight: () => watcher,
  });
  const store = createSettleStore(options, (moved) => dispatcher.sendAgain(moved));
  const watcher = createWatcher({
    chain,
    ways,
    store,
    outcomes,
    now,
    log,
    account: signer.address,
    onRoom() {
      queue.wakeIfAlone();
      dispatcher.pump();
    },
    replace: createReplace({ chain, signer, ways, store, now, log }),
    fill: createFill({ chain, signer, store }),
  });
  const dispatcher = createDispatcher({
    chain,
    signer,
    ledger,
    ways,
    now,
    log,
    queue,
    watcher,
    maxInFlight,
  });

  return {
    operator: signer.address,
    health: createOperatorHealth({ network: network.name, operator: signer.address, now, log }),

    async submit(submission) {
      if (stopped) throw new UndeterminedError(shuttingDown);
      // Whose txNonces would be taken is not known yet.
      if (!started) throw new UndeterminedError(`${network.name} is not ready; nothing was sent, try again`);
      if (submission.signal.aborted) return "withdrawn";
      const outcome = queue.add(submission);
      dispatcher.pump();
      return outcome;
    },

    load: () => ({
      transactions: watcher.unmined(),
      queued: queue.length(),
      vanished: watcher.vanished(),
      unconfirmed: watcher.unconfirmed(),
      unproven: watcher.unproven(),
    }),

    async start(mined) {
      const txNonce = mined ?? (await leastTransactionCount(chain, signer.address));
      await ledger.claims.introduceOperator(network.chainId, signer.address, txNonce);
      await watcher.start();
      started = true;
    },

    async stop() {
      stopped = true;
      queue.rejectAll(new UndeterminedError(shuttingDown));
      await dispatcher.stop();
      await watcher.stop();
    },
  };
}

const shuttingDown = "The service is shutting down; nothing was sent, try again";

/** Where the settles of one operator are kept. */
function createSettleStore(
  { chain: { network }, signer, ledger }: Pick<RelayerOptions, "chain" | "signer" | "ledger">,
  sendAgain: Dispatcher["sendAgain"],
): TransactionStore {
  const { claims, outcomes } = ledger;
  const account = [network.chainId, signer.address] as const;
  return {
    async open() {
      const open = await claims.openAttempts(...account);
      return open.map((batch) => {
        // Only what was decided before has a word on it while it is undecided.
        const decided = batch.settlements.find(
          ({ state, failure }) => state === "submitted" && failure !== null,
        );
        const hasVanished = batch.settlements.length === 0 || decided !== undefined;
        return { ...batch, hasVanished, answered: decided?.transactionHash };
      });
    },
    next: async () => (await claims.nextTxNonce(...account)) ?? 0,
    concluded: (range) => outcomes.concludedSettles(...account, range),
    reopen: (transactions) => outcomes.reopenSettles(...account, transactions),
    fillTxNonce: outcomes.fillTxNonce,
    addAttempt: claims.addAttempt,
    noteMined: outcomes.noteMined,
    conclude: outcomes.conclude,
    async sendAgain({ txNonce, settlements, attempts }, mined) {
      if (settlements.length === 0) {
        await closeEmpty(claims, { chainId: network.chainId, operator: signer.address, txNonce });
      }
      const codes = codesOf(attempts);
      sendAgain(settlements.map(({ id }) => ({ txNonce, id, mined, codes })));
    },
  };
}
