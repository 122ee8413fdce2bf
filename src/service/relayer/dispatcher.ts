import { setImmediate } from "node:timers/promises";
import { estimateFees } from "../../chain/fees.ts";
import type { SignedTransaction } from "../../chain/signing/local-signer.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Claim } from "../../ledger/settlement.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import type { Hex } from "../../protocol/hex.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { sleep } from "../../util/waiting.ts";
import type { RecovererOptions } from "./recoverer.ts";
import { callOf, networkOf } from "./slot.ts";
import { newestOf, type Queued, type Submission, type SubmissionQueue } from "./submission-queue.ts";
import type { Watcher } from "./watcher.ts";

/** Signs, stores and sends queued payments, one transaction after the other. */
export type Dispatcher = {
  /** Continues while there is something to send and room for it. */
  pump(): void;
  /** Moves settlements away from a txNonce that decided nothing about them, each to its own txNonce. */
  sendAgain(moved: readonly Moved[]): void;
  /** Waits for transactions that are being signed and sent. */
  stop(): Promise<void>;
};

/** A settlement to move away from a txNonce that decided nothing about it. `mined` is the transaction that used the txNonce. */
type Moved = { txNonce: number; id: Hex; mined: Hex | null; codes: SettleCall["codes"] };

export type DispatcherOptions = Pick<
  RecovererOptions,
  "chain" | "signer" | "ledger" | "ways" | "now" | "log"
> & {
  queue: SubmissionQueue;
  watcher: Pick<Watcher, "unmined" | "isFull" | "send" | "adopt">;
  /** The maximum number of unmined transactions. */
  maxInFlight: number;
};

/** Between two checks if other instances have left room. */
const sharedRoomPollMs = 100;

/** The pause after a transaction could not be signed or stored, in milliseconds. */
const retryPauseMs = 500;

/**
 * Signs, persists and broadcasts, so that transactions reach the node in nonce order. The next one is signed and stored
 * while the previous one is on its way to the node.
 */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { chain, signer, ledger, queue, watcher, now, log, maxInFlight } = options;
  const { network } = chain;
  const operator = { chainId: network.chainId, address: signer.address, maxUnmined: maxInFlight };
  const sign = createSettleSigning(options);
  const moving: Moved[] = [];
  let broadcast: Promise<void> = Promise.resolve();
  let pumping = false;
  let pumped: Promise<void> = Promise.resolve();
  let stopped = false;

  function pump(): void {
    if (!pumping) pumped = sendWhileRoom();
  }

  async function sendWhileRoom(): Promise<void> {
    // Set and cleared without an await next to the loop's condition. Otherwise a submission could fall between the last
    // check of the queue and the end of this run, and wait forever.
    pumping = true;
    try {
      const hasRoom = () => watcher.unmined() < maxInFlight && !watcher.isFull();
      while (!stopped && queue.length() + moving.length > 0 && hasRoom()) {
        // One turn of the event loop, so that payments whose checks were answered together leave together.
        await setImmediate();
        const moved = moving.shift();
        if (moved !== undefined) await move(moved);
        else {
          await queue.waitForMore();
          const batch = await queue.takeBatch();
          if (batch === "no_money") {
            // Transactions in flight leave some of their gas money when they are mined.
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

  /** Other instances of a shared operator also use its room, and do not tell when they free some. */
  function pumpLater(): void {
    setTimeout(pump, sharedRoomPollMs).unref();
  }

  /** Returns false if there was no room: the batch is back at the head of the queue. */
  async function send(batch: readonly Queued[]): Promise<boolean> {
    const timely = withoutLate(batch, now());
    if (timely.length === 0) return true;
    try {
      const { outcomes, attempt } = await ledger.claims.claim(
        operator,
        timely.map((item) => item.claim),
        (txNonce, claimable) => sign(txNonce, claimable, callsOf(timely, claimable), newestOf(timely)),
      );
      if (outcomes.includes("no_room")) {
        queue.putBack(timely);
        pumpLater();
        return false;
      }
      const settlements = timely
        .filter((_, index) => outcomes[index] === "claimed")
        .map((item) => item.claim);
      for (const [index, item] of timely.entries()) {
        const outcome = outcomes[index];
        if (outcome !== undefined && outcome !== "no_room") item.resolve(outcome);
      }
      if (attempt !== null) {
        const { hash, txNonce } = attempt;
        const about = { network: network.name, hash, txNonce, settlements: settlements.map(({ id }) => id) };
        log.debug(about, "sending settlements");
        // Broadcast in order.
        await broadcast;
        broadcast = watcher.send({ attempt, settlements });
      }
    } catch (error) {
      log.error({ network: network.name, err: error }, "a transaction could not be signed and stored");
      await settleDoubts(timely, error, { ledger, watcher });
    }
    return true;
  }

  /** Moves one settlement to its own txNonce; the last one to leave closes the old txNonce. */
  async function move(moved: Moved): Promise<void> {
    const { id, codes, ...left } = moved;
    try {
      const [head, tip] = await Promise.all([chain.head(), chain.suggestedTip()]);
      const from = { chainId: network.chainId, operator: signer.address, ...left };
      const batch = await ledger.claims.redrive(from, [id], (txNonce, settlements) => {
        const calls = settlements.map((claim) => ({ ...callOf(claim, network), codes }));
        return sign(txNonce, settlements, calls, { head, tip });
      });
      await broadcast;
      if (batch !== null) await watcher.send(batch);
    } catch (error) {
      const about = { network: network.name, settlement: id, err: error };
      log.error(about, "a settlement could not be sent again; retrying");
      moving.push(moved);
      await sleep(retryPauseMs);
    }
  }

  return {
    pump,
    sendAgain(moved) {
      moving.push(...moved);
      pump();
    },
    async stop() {
      stopped = true;
      queue.wake();
      await pumped;
      await broadcast;
    },
  };
}

type SignSettle = (
  txNonce: number,
  /** The claims of the calls, in the same order; all for one contract. */
  claims: readonly Claim[],
  calls: readonly SettleCall[],
  checkedAt: Pick<Submission, "head" | "tip">,
) => Promise<SignedTransaction>;

function createSettleSigning({
  chain: { network },
  signer,
  ways,
}: Pick<DispatcherOptions, "chain" | "signer" | "ways">): SignSettle {
  return async (txNonce, [first], calls, { head, tip }) => {
    if (first === undefined) throw new RangeError("a settle transaction needs at least one payment");
    return signer.signTransaction({
      chainId: network.chainId,
      nonce: txNonce,
      ...ways.settlingOf(first.method).transaction(calls, networkOf(network, first)),
      ...estimateFees(head, network, tip),
    });
  };
}

/** The calls of the claimable payments, in their order. */
function callsOf(batch: readonly Queued[], claimable: readonly { id: Hex }[]): SettleCall[] {
  const itemOf = new Map(batch.map((item) => [item.claim.id, item]));
  return claimable.flatMap(({ id }) => itemOf.get(id)?.call ?? []);
}

/** Returns those that can still be signed in time, and refuses the others. */
function withoutLate(batch: readonly Queued[], time: number): Queued[] {
  return batch.filter((item) => {
    const late = time > item.sendBefore ? "expired" : time > item.deadline ? "withdrawn" : undefined;
    if (late !== undefined) item.resolve(late);
    return late === undefined;
  });
}

/**
 * Resolves payments after an error: a commit whose response was lost may have succeeded. A stored transaction is sent,
 * and its payments count as claimed.
 */
async function settleDoubts(
  doubtful: readonly Queued[],
  cause: unknown,
  { ledger, watcher }: { ledger: Pick<Ledger, "claims">; watcher: Pick<Watcher, "adopt"> },
): Promise<void> {
  const unrecorded = new UndeterminedError("The payment could not be recorded; nothing was sent", { cause });
  try {
    // Only an error of the database itself leaves open if something was stored.
    if (cause instanceof UndeterminedError) await watcher.adopt();
    for (const item of doubtful) {
      const { id, organizationId, digest } = item.claim;
      const found = cause instanceof UndeterminedError ? await ledger.claims.find(id) : null;
      const isClaimed = found?.organizationId === organizationId && found.digest === digest;
      if (isClaimed) item.resolve("claimed");
      else item.reject(unrecorded);
    }
  } catch {
    const unknown = "Whether the payment was recorded is not known; ask again with the same payment";
    for (const item of doubtful) item.reject(new UndeterminedError(unknown, { cause }));
  }
}
