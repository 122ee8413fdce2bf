import { setImmediate } from "node:timers/promises";
import { estimateFees } from "../../chain/fees.ts";
import type { Head } from "../../chain/rpc/calls.ts";
import type { SignedTransaction } from "../../chain/signing/signer.ts";
import type { ClaimOutcome, ClaimRequest } from "../../ledger/ledger.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { OperatorError, UndeterminedError } from "../../util/errors.ts";
import { createOperatorHealth, type OperatorHealth } from "./operator-health.ts";
import { sleep } from "./poll.ts";
import type { RecovererOptions } from "./recoverer.ts";
import { closeEmpty, createFill, createReplace } from "./replacement.ts";
import { callOf, type TransactionStore } from "./slot.ts";
import { createWatcher } from "./watcher.ts";

/** A checked payment that asks to be claimed and sent. */
export type Submission = {
  claim: ClaimRequest;
  call: SettleCall;
  /** The block that the payment was checked against; its base fee prices the transaction, with this tip in wei. */
  head: Head;
  tip: bigint;
  /** The operator's gas money then, in wei. */
  gasMoney: bigint;
  /** Unix milliseconds: signed later than this, it could be mined too late. */
  sendBefore: number;
  /** Unix milliseconds: still unsigned then, it is withdrawn. */
  deadline: number;
  /** Aborts when no request waits for it any more: unsigned, it is withdrawn. */
  signal: AbortSignal;
};

/**
 * What became of a submission, once it is durable: the ledger's word, or
 * - `expired`: its authorization would have run out before it could be mined;
 * - `withdrawn`: its turn did not come before its deadline, or its caller left.
 * Nothing was signed for anything but `claimed`.
 */
export type SubmissionOutcome = Exclude<ClaimOutcome, "no_room"> | "expired" | "withdrawn";

/** Sends the settlements of one operator key on one network. */
export type Relayer = {
  readonly operator: Address;
  submit(submission: Submission): Promise<SubmissionOutcome>;
  /**
   * Transactions that no block is known to hold, payments that wait for their turn, unsigned, those of the
   * transactions that a block held which has vanished from the chain, and those that too few RPC endpoints confirm.
   */
  load(): { transactions: number; queued: number; vanished: number; unconfirmed: number };
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

type Queued = Submission & {
  /** Unix milliseconds. */
  queuedAt: number;
  /** What all transactions might cost that were known by then, in wei: see `Flight.spent`. */
  spentBefore: bigint;
  resolve(outcome: SubmissionOutcome): void;
  reject(error: unknown): void;
};

/** One settlement that is to move away from a txNonce that decided nothing about it. */
type Redrive = { txNonce: number; id: Hex; mined: Hex | null };

/** Between two looks whether other instances have left room. */
const sharedRoomPollMs = 100;

/** For how much of a block time a payment waits for others to share its transaction, while one is under way. */
const fillShare = 0.01;

/** The pause after something could not be signed or stored, milliseconds. */
const retryPauseMs = 500;

/**
 * One lane: sign, persist, broadcast, one transaction after the other, so that they reach the node in the order of
 * their txNonces; the next is signed and stored while the one before is on its way to the node. What arrives in the
 * meantime waits in a queue and leaves together. While nothing is under way a payment leaves at once; otherwise it
 * waits for a full batch, for the end of what is under way, or for a hundredth of a block time, whichever is first.
 */
export function createRelayer(options: RelayerOptions): Relayer {
  const { chain, signer, ledger, ways, outcomes, now, log, maxInFlight = 16, maxBatch = 50 } = options;
  const { network } = chain;
  const { maxTransactionCost } = network;
  const operator = { chainId: network.chainId, address: signer.address, maxUnmined: maxInFlight };
  const queue: Queued[] = [];
  const redrives: Redrive[] = [];
  const fillMs = network.blockTimeMs * fillShare;
  let wakeFilling: () => void = () => {};
  let broadcast: Promise<void> = Promise.resolve();
  let pumping = false;
  let pumped: Promise<void> = Promise.resolve();
  let started = false;
  let stopped = false;

  const store: TransactionStore = {
    async open() {
      const open = await ledger.openAttempts(network.chainId, signer.address);
      return open.map((batch) => ({
        ...batch,
        // Only what was decided before has a word on it while it is undecided.
        hasVanished:
          batch.settlements.length === 0 ||
          batch.settlements.some(({ state, failure }) => state === "submitted" && failure !== null),
      }));
    },
    next: async () => (await ledger.nextTxNonce(network.chainId, signer.address)) ?? 0,
    concluded: (range) => ledger.concludedSettles(network.chainId, signer.address, range),
    reopen: (transactions) => ledger.reopenSettles(network.chainId, signer.address, transactions),
    fillTxNonce: ledger.fillTxNonce,
    addAttempt: ledger.addAttempt,
    noteMined: ledger.noteMined,
    conclude: ledger.conclude,
    async sendAgain({ txNonce, settlements }, mined) {
      if (settlements.length === 0)
        await closeEmpty(ledger, { ...operator, operator: signer.address, txNonce });
      redrives.push(...settlements.map(({ id }) => ({ txNonce, id, mined })));
      pump();
    },
  };
  const watcher = createWatcher({
    chain,
    ways,
    store,
    outcomes,
    now,
    log,
    account: signer.address,
    onRoom() {
      if (watcher.unmined() === 0) wakeFilling();
      pump();
    },
    replace: createReplace({ chain, signer, ways, store, now, log }),
    fill: createFill({ chain, signer, store }),
  });

  function pump(): void {
    if (!pumping) pumped = sendWhileRoom();
  }

  async function sendWhileRoom(): Promise<void> {
    // Set and cleared without an await beside the loop's condition: else a submission could fall between
    // the last look at the queue and the end of this run, and wait for ever.
    pumping = true;
    try {
      const hasRoom = () => watcher.unmined() < maxInFlight && !watcher.isFull();
      while (!stopped && queue.length + redrives.length > 0 && hasRoom()) {
        // One turn of the event loop: payments whose checks came back in one answer of the node leave together.
        await setImmediate();
        const redrive = redrives.shift();
        if (redrive !== undefined) await sendAgain(redrive);
        else {
          await fill();
          const batch = await takeBatch();
          if (batch === "no_money") {
            // What is in flight leaves some when it is mined.
            pumpLater();
            break;
          }
          if (!(await send(batch))) break;
        }
      }
    } finally {
      pumping = false;
    }
  }

  /** Waits for more payments to share a transaction with those that are queued. */
  async function fill(): Promise<void> {
    const [first] = queue;
    if (first === undefined || queue.length >= maxBatch || watcher.unmined() === 0) return;
    const leftMs = first.queuedAt + fillMs - now();
    if (leftMs <= 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, leftMs);
    wakeFilling = resolve;
    await promise;
    clearTimeout(timer);
  }

  /** Other instances fill the room of a shared operator too, and do not say when they have made some. */
  function pumpLater(): void {
    setTimeout(pump, sharedRoomPollMs).unref();
  }

  /**
   * The longest-waiting submissions of one asset and way to pay, as many as one transaction holds and the gas money pays for together
   * with what is in flight.
   */
  async function takeBatch(): Promise<Queued[] | "no_money"> {
    const [first] = queue;
    if (first === undefined) return [];
    const { method, asset } = first.claim;
    const isAlike = ({ claim }: Queued) => claim.method === method && sameAddress(claim.asset, asset);
    const waiting = queue.filter(isAlike).slice(0, maxBatch);
    const newest = waiting.reduce((a, b) => (b.head.number > a.head.number ? b : a));
    const { maxFeePerGas } = estimateFees(newest.head, network, newest.tip);
    // Taken before the balance is read: what is mined in between is subtracted twice, and not left out.
    const inFlight = watcher.cost();
    const count = (gasMoney: bigint) => {
      const left = gasMoney - inFlight;
      const isBound = maxTransactionCost !== undefined && maxTransactionCost < left;
      return ways.settlingOf(method).count(
        waiting.map(({ call }) => call),
        { maxPayments: maxBatch, maxFeePerGas, maxCost: isBound ? maxTransactionCost : left },
      );
    };
    // What was sent since it was read may have been paid from it, and other instances pay from it too. Where that may
    // matter it is read again.
    const isAmple = count((newest.gasMoney - (watcher.spent() - newest.spentBefore)) / 2n) === waiting.length;
    const fitting = isAmple ? waiting.length : count(await gasMoneyNow(newest.gasMoney));
    if (fitting === 0 && inFlight > 0n) return "no_money";
    // Some may have been withdrawn meanwhile.
    const batch = waiting.filter((item) => queue.includes(item)).slice(0, Math.max(1, fitting));
    for (const item of batch) queue.splice(queue.indexOf(item), 1);
    if (fitting > 0) return batch;
    for (const item of batch) item.reject(withoutGasMoney());
    return [];
  }

  function withoutGasMoney(): OperatorError {
    const { address } = signer;
    return new OperatorError("no gas money", {
      hints: [
        `The operator ${address} on ${network.name} cannot pay for one transaction: send it native coins, or allow more per transaction`,
      ],
    });
  }

  /** The operator may have been sent some since. */
  async function gasMoneyNow(known: bigint): Promise<bigint> {
    try {
      return await chain.nativeBalance(signer.address);
    } catch {
      return known;
    }
  }

  async function sign(
    txNonce: number,
    calls: readonly SettleCall[],
    { head, tip }: Pick<Submission, "head" | "tip">,
  ): Promise<SignedTransaction> {
    const [first] = calls;
    if (first === undefined) throw new RangeError("a settle transaction needs at least one payment");
    return signer.signTransaction({
      chainId: network.chainId,
      nonce: txNonce,
      ...ways.settlingOf(first.payment.method).transaction(calls, network),
      ...estimateFees(head, network, tip),
    });
  }

  /** False when there was no room: the batch is back at the head of the queue. */
  async function send(batch: readonly Queued[]): Promise<boolean> {
    const timely = batch.filter((item) => {
      const late = now() > item.sendBefore ? "expired" : now() > item.deadline ? "withdrawn" : undefined;
      if (late !== undefined) item.resolve(late);
      return late === undefined;
    });
    if (timely.length === 0) return true;

    try {
      const newest = timely.reduce((a, b) => (b.head.number > a.head.number ? b : a));
      const itemOf = new Map(timely.map((item) => [item.claim.id, item]));
      const { outcomes: claimed, attempt } = await ledger.claim(
        operator,
        timely.map((item) => item.claim),
        (txNonce, claimable) => {
          const calls = claimable.flatMap(({ id }) => itemOf.get(id)?.call ?? []);
          return sign(txNonce, calls, newest);
        },
      );
      if (claimed.includes("no_room")) {
        queue.unshift(...timely);
        pumpLater();
        return false;
      }
      const settlements = timely.filter((_, index) => claimed[index] === "claimed").map((item) => item.claim);
      for (const [index, item] of timely.entries()) {
        const outcome = claimed[index];
        if (outcome !== undefined && outcome !== "no_room") item.resolve(outcome);
      }
      if (attempt !== null) {
        const { hash, txNonce } = attempt;
        log.debug(
          { network: network.name, hash, txNonce, settlements: settlements.map(({ id }) => id) },
          "sending settlements",
        );
        // One at a time is on its way, and this one follows it.
        await broadcast;
        broadcast = watcher.send({ attempt, settlements });
      }
    } catch (error) {
      log.error({ network: network.name, err: error }, "a transaction could not be signed and stored");
      await settleDoubts(timely, error);
    }
    return true;
  }

  /** A commit whose answer was lost may have happened. What it has stored is sent, and its payments are claimed. */
  async function settleDoubts(doubtful: readonly Queued[], cause: unknown): Promise<void> {
    const unrecorded = new UndeterminedError("The payment could not be recorded; nothing was sent", {
      cause,
    });
    try {
      // Only the database itself may leave it open whether something was kept.
      if (cause instanceof UndeterminedError) await watcher.adopt();
      for (const item of doubtful) {
        const { id, organizationId, digest } = item.claim;
        const found = cause instanceof UndeterminedError ? await ledger.find(id) : null;
        const isClaimed = found?.organizationId === organizationId && found.digest === digest;
        if (isClaimed) item.resolve("claimed");
        else item.reject(unrecorded);
      }
    } catch {
      const unknown = "Whether the payment was recorded is not known; ask again with the same payment";
      for (const item of doubtful) item.reject(new UndeterminedError(unknown, { cause }));
    }
  }

  /** Moves one settlement to a txNonce of its own; the last to leave closes the old one. */
  async function sendAgain(redrive: Redrive): Promise<void> {
    const { txNonce: oldTxNonce, id, mined } = redrive;
    try {
      const [head, tip] = await Promise.all([chain.head(), chain.suggestedTip()]);
      const from = { chainId: network.chainId, operator: signer.address, txNonce: oldTxNonce, mined };
      const batch = await ledger.redrive(from, [id], (txNonce, settlements) =>
        sign(
          txNonce,
          settlements.map((claim) => callOf(claim, network.facilitatorContract)),
          { head, tip },
        ),
      );
      await broadcast;
      if (batch !== null) await watcher.send(batch);
    } catch (error) {
      log.error(
        { network: network.name, settlement: id, err: error },
        "a settlement could not be sent again; retrying",
      );
      redrives.push(redrive);
      await sleep(retryPauseMs);
    }
  }

  return {
    operator: signer.address,
    health: createOperatorHealth({ network: network.name, operator: signer.address, now, log }),

    submit(submission) {
      const { promise, resolve, reject } = Promise.withResolvers<SubmissionOutcome>();
      if (stopped) {
        reject(new UndeterminedError("The service is shutting down; nothing was sent, try again"));
        return promise;
      }
      if (!started) {
        // Whose txNonces would be taken is not known yet.
        reject(new UndeterminedError(`${network.name} is not ready; nothing was sent, try again`));
        return promise;
      }
      if (submission.signal.aborted) {
        resolve("withdrawn");
        return promise;
      }
      const item: Queued = { ...submission, queuedAt: now(), spentBefore: watcher.spent(), resolve, reject };
      queue.push(item);
      if (queue.length >= maxBatch) wakeFilling();
      const withdraw = () => {
        const index = queue.indexOf(item);
        if (index === -1) return;
        queue.splice(index, 1);
        resolve("withdrawn");
      };
      const timer = setTimeout(withdraw, Math.max(0, submission.deadline - now()));
      submission.signal.addEventListener("abort", withdraw);
      pump();
      return promise.finally(() => {
        clearTimeout(timer);
        submission.signal.removeEventListener("abort", withdraw);
      });
    },

    load: () => ({
      transactions: watcher.unmined(),
      queued: queue.length,
      vanished: watcher.vanished(),
      unconfirmed: watcher.unconfirmed(),
    }),

    async start(mined) {
      const txNonce = mined ?? (await chain.transactionCount(signer.address));
      await ledger.introduceOperator(network.chainId, signer.address, txNonce);
      await watcher.start();
      started = true;
    },

    async stop() {
      stopped = true;
      for (const item of queue.splice(0)) {
        item.reject(new UndeterminedError("The service is shutting down; nothing was sent, try again"));
      }
      wakeFilling();
      await pumped;
      await broadcast;
      await watcher.stop();
    },
  };
}
