import type { Chain } from "../../chain/chain.ts";
import { estimateFees } from "../../chain/fees.ts";
import type { Head } from "../../chain/rpc/calls.ts";
import type { ClaimOutcome, ClaimRequest } from "../../ledger/ledger.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { Address } from "../../protocol/hex.ts";
import { OperatorError } from "../../util/errors.ts";
import type { Flight } from "./sender.ts";
import { networkOf } from "./slot.ts";

/** A checked payment to be claimed and sent. */
export type Submission = {
  claim: ClaimRequest;
  call: SettleCall;
  /** The block that the payment was checked against. Its base fee and this tip, in wei, price the transaction. */
  head: Head;
  tip: bigint;
  /** The operator's gas money at that block, in wei. */
  gasMoney: bigint;
  /** Unix milliseconds: if signed later, it could be mined too late. */
  sendBefore: number;
  /** Unix milliseconds: if still unsigned then, it is withdrawn. */
  deadline: number;
  /** Aborts when no request waits for it anymore: if still unsigned, it is withdrawn. */
  signal: AbortSignal;
};

/**
 * The outcome of a submission once it is durable: that of the ledger, or
 * - `expired`: its authorization would have expired before it could be mined;
 * - `withdrawn`: its deadline passed while it was queued, or its caller left.
 *
 * Unless it is `claimed`, nothing was signed.
 */
export type SubmissionOutcome = Exclude<ClaimOutcome, "no_room"> | "expired" | "withdrawn";

/** A queued submission. */
export type Queued = Submission & {
  /** Submissions with the same key may share a transaction. */
  batchKey: string;
  /** When it was added, in unix milliseconds. */
  queuedAt: number;
  /** The maximum cost of all transactions known by then, in wei: see `Flight.spent`. */
  spentBefore: bigint;
  resolve(outcome: SubmissionOutcome): void;
  reject(error: unknown): void;
};

/** The unsigned submissions of one operator on one network. */
export type SubmissionQueue = {
  length(): number;
  /** Adds a submission at the end. It is withdrawn at its deadline, or when its caller leaves. */
  add(submission: Submission): Promise<SubmissionOutcome>;
  /** Puts submissions for which there was no room back at the head. */
  putBack(batch: readonly Queued[]): void;
  /**
   * Waits for more payments to share a transaction with the queued ones, for at most a hundredth of a block time. Does
   * not wait for a lone payment.
   */
  waitForMore(): Promise<void>;
  /** Ends that wait. */
  wake(): void;
  /** Ends that wait for a lone payment, once nothing is in flight. */
  wakeIfAlone(): void;
  /**
   * Takes the oldest submissions that may share a transaction: as many as fit into one and as the gas money pays for,
   * in addition to what is in flight.
   */
  takeBatch(): Promise<Queued[] | "no_money">;
  /** Rejects and removes all submissions. */
  rejectAll(error: Error): void;
};

export type SubmissionQueueOptions = {
  chain: Chain;
  operator: Address;
  ways: WaysToPay;
  /** The transactions in flight. */
  flight(): Pick<Flight, "unmined" | "cost" | "spent">;
  now: () => number;
  /** The maximum number of payments in one transaction. */
  maxBatch: number;
};

/** How long a payment waits for others to share its transaction, as a fraction of a block time. */
const fillShare = 0.01;

export function createSubmissionQueue(options: SubmissionQueueOptions): SubmissionQueue {
  const { chain, operator, ways, flight, now, maxBatch } = options;
  const { network } = chain;
  const queue: Queued[] = [];
  const fillMs = network.blockTimeMs * fillShare;
  let wake: () => void = () => {};
  /** True if the last transaction held several payments: then more are likely to arrive at once, even at other instances. */
  let wasShared = false;

  const isAlone = () => flight().unmined() === 0 && !wasShared;

  /** How many of the given submissions the gas money pays for. */
  async function countPayable(waiting: readonly Queued[], newest: Queued, inFlight: bigint): Promise<number> {
    const { maxTransactionCost } = network;
    const { maxFeePerGas } = estimateFees(newest.head, network, newest.tip);
    const count = (gasMoney: bigint) => {
      const left = gasMoney - inFlight;
      const isBound = maxTransactionCost !== undefined && maxTransactionCost < left;
      return ways.settlingOf(newest.claim.method).count(
        waiting.map(({ call }) => call),
        networkOf(network, newest.claim),
        { maxPayments: maxBatch, maxFeePerGas, maxCost: isBound ? maxTransactionCost : left },
      );
    };
    // Transactions sent since the balance was read may have been paid from it, by other instances too. If that could
    // matter, it is read again.
    const spentSince = flight().spent() - newest.spentBefore;
    const isAmple = count((newest.gasMoney - spentSince) / 2n) === waiting.length;
    return isAmple ? waiting.length : count(await gasMoneyNow(newest.gasMoney));
  }

  /** Reads the gas money again: the operator may have received some since. */
  async function gasMoneyNow(known: bigint): Promise<bigint> {
    try {
      return await chain.nativeBalance(operator);
    } catch {
      return known;
    }
  }

  return {
    length: () => queue.length,

    add(submission) {
      const { promise, resolve, reject } = Promise.withResolvers<SubmissionOutcome>();
      const { claim, call } = submission;
      const { method, contract } = claim;
      const key = ways.settlingOf(method).batchKey(call, networkOf(network, claim));
      const item: Queued = {
        ...submission,
        // A transaction carries the code of one app.
        batchKey: `${method} ${contract} ${key} ${call.codes?.app ?? ""}`,
        queuedAt: now(),
        spentBefore: flight().spent(),
        resolve,
        reject,
      };
      queue.push(item);
      if (queue.length >= maxBatch) wake();
      const withdraw = () => {
        const index = queue.indexOf(item);
        if (index === -1) return;
        queue.splice(index, 1);
        resolve("withdrawn");
      };
      const timer = setTimeout(withdraw, Math.max(0, submission.deadline - now()));
      submission.signal.addEventListener("abort", withdraw);
      return promise.finally(() => {
        clearTimeout(timer);
        submission.signal.removeEventListener("abort", withdraw);
      });
    },

    putBack: (batch) => void queue.unshift(...batch),

    async waitForMore() {
      const [first] = queue;
      if (first === undefined || queue.length >= maxBatch || isAlone()) return;
      const leftMs = first.queuedAt + fillMs - now();
      if (leftMs <= 0) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, leftMs);
      wake = resolve;
      await promise;
      clearTimeout(timer);
    },

    wake: () => wake(),

    wakeIfAlone() {
      if (isAlone()) wake();
    },

    async takeBatch() {
      const [first] = queue;
      if (first === undefined) return [];
      const waiting = queue.filter(({ batchKey }) => batchKey === first.batchKey).slice(0, maxBatch);
      // Taken before the balance is read: a transaction mined in between is subtracted twice rather than not at all.
      const inFlight = flight().cost();
      const fitting = await countPayable(waiting, newestOf(waiting), inFlight);
      if (fitting === 0 && inFlight > 0n) return "no_money";
      // Some may have been withdrawn meanwhile.
      const batch = waiting.filter((item) => queue.includes(item)).slice(0, Math.max(1, fitting));
      for (const item of batch) queue.splice(queue.indexOf(item), 1);
      if (fitting > 0) {
        wasShared = batch.length > 1;
        return batch;
      }
      for (const item of batch) item.reject(withoutGasMoney(operator, network.name));
      return [];
    },

    rejectAll(error) {
      for (const item of queue.splice(0)) item.reject(error);
    },
  };
}

/** The submission that was checked against the newest block. */
export function newestOf(batch: readonly Queued[]): Queued {
  return batch.reduce((a, b) => (b.head.number > a.head.number ? b : a));
}

function withoutGasMoney(operator: Address, network: string): OperatorError {
  return new OperatorError("no gas money", {
    hints: [
      `The operator ${operator} on ${network} cannot pay for one transaction: send it native coins, or allow more per transaction`,
    ],
  });
}
