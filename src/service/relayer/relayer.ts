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
 * Tracks if one operator can settle, by the result of its last payments. This is known at once, before the next
 * inspection of the network.
 */
export type OperatorHealth = {
  /** Returns true if payments should prefer another operator: this one could not settle recently. */
  isAvoided(): boolean;
  /** Records that it could not settle a payment. Logged once per problem. */
  failed(error: OperatorError): void;
  /** Records that it signed for a payment. */
  worked(): void;
};

/** After this time, in milliseconds, a payment tries again if the operator can settle. */
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
   * The transactions that are in no known block (`transactions`), the unsigned payments (`queued`), the transactions
   * whose block has vanished from the chain (`vanished`), those confirmed by too few RPC endpoints (`unconfirmed`), and
   * those that are mined but prove nothing (`unproven`).
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
   * Introduces the operator to the ledger and continues what an earlier process left in flight. Until then no payments
   * are accepted.
   *
   * @param mined how many of its transactions are mined, if known; otherwise the chain is asked
   */
  start(mined?: number): Promise<void>;
  /** Accepts no more submissions and waits for transactions that are being signed. Those in flight stay in the ledger. */
  stop(): Promise<void>;
};

export type RelayerOptions = RecovererOptions & {
  /** The maximum number of unmined transactions; nodes guarantee only 16 per account. */
  maxInFlight?: number;
  /** The maximum number of payments in one transaction. */
  maxBatch?: number;
};

/**
 * Signs, persists and broadcasts one transaction after the other, so that they reach the node in nonce order. The next one is
 * signed and stored while the previous one is on its way to the node. Payments that arrive meanwhile are queued and leave
 * together. If nothing is in flight and the last transaction held one payment, a payment leaves at once. Otherwise it waits
 * for a full batch or for a hundredth of a block time; a lone payment waits only while something is in flight.
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
      // Before the start, it is unknown which txNonces are free.
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

/** The store for the settles of one operator. */
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
        // While a settlement is undecided, it has a failure text only if it was decided before.
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
