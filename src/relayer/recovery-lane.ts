import type { Chain } from "../chain/chain.ts";
import { describeRevert } from "../chain/contract/revert.ts";
import type { Signer } from "../chain/signing/signer.ts";
import { estimateFees, forwardTransaction } from "../chain/signing/transaction.ts";
import { KitError, UndeterminedError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Settlement } from "../ledger/settlement.ts";
import type { ServiceLog } from "../logging/logger.ts";
import type { Address } from "../protocol/hex.ts";
import type { Outcomes } from "./outcomes.ts";
import { createReplace } from "./replacement.ts";
import { createWatcher } from "./watcher.ts";

/** Pays out, with one key on one network, what direct submissions brought to the facilitator contract. */
export type Recoverer = {
  readonly address: Address;
  /**
   * Signs, stores and broadcasts the forward of a queued recovery; from then on it is watched until the chain has
   * decided it. Does nothing for one that is not queued, which another instance may have sent. The caller vouches for
   * the proof: the contract cannot tell a used authorization from a cancelled one.
   *
   * @throws UndeterminedError when it cannot be sent now; nothing was signed then, and it stays queued.
   */
  forward(settlement: Settlement): Promise<void>;
  /** Takes up what an earlier process left in flight. */
  start(): Promise<void>;
  /**
   * Queues again what lost its txNonce to another transaction of the same key, sent by hand perhaps. Called on a
   * timer.
   */
  freeLostTxNonces(): Promise<void>;
  /** Waits for what is being signed. What is in flight stays in the ledger. */
  stop(): Promise<void>;
};

export type RecovererOptions = {
  chain: Chain;
  signer: Signer;
  ledger: Ledger;
  outcomes: Outcomes;
  now: () => number;
  log: ServiceLog;
};

/** Block times before what was reverted is tried again: a reason like a missing role takes people to mend. */
const retryAfterBlocks = 30;

/** Unmined transactions at a time; nodes guarantee an account no more than 16. */
const maxInFlight = 16;

/** Block times, beside confirmations, for which a txNonce must seem taken by a transaction that is none of ours. */
const lostAfterBlocks = 15;

export function createRecoverer(options: RecovererOptions): Recoverer {
  const { chain, signer, ledger, outcomes, now, log } = options;
  const { network } = chain;
  const { chainId } = network;
  const recoverer = { chainId, address: signer.address };
  /** When a txNonce was first seen taken, by its number. */
  const takenSince = new Map<number, number>();
  let turn: Promise<void> = Promise.resolve();
  let stopped = false;

  const watcher = createWatcher({
    chain,
    // What the watcher knows as settlements of an operator's transaction are here those that a forward pays out.
    ledger: {
      ...ledger,
      openAttempts: ledger.openForwards,
      noteMined: async () => {},
      async conclude({ operator, ...mined }, conclusions) {
        const [conclusion, ...others] = conclusions;
        if (conclusion === undefined || others.length > 0)
          throw new KitError("a forward pays out one settlement");
        const { id } = conclusion;
        if (conclusion.state === "settled") {
          await ledger.concludeForward({ ...mined, recoverer: operator }, id);
          log.info({ network: network.name, settlement: id, hash: mined.hash }, "a payment was recovered");
        } else {
          const { failure } = conclusion;
          await ledger.requeueForward(
            { ...mined, recoverer: operator },
            id,
            failure,
            now() + retryAfterBlocks * network.blockTimeMs,
          );
          log.error({ network: network.name, settlement: id, hash: mined.hash }, `${failure}; trying again`);
        }
      },
    },
    outcomes,
    now,
    log,
    operator: signer.address,
    onRoom: () => {},
    onRedrive: () => {},
    findsLost: false,
    replace: createReplace({ chain, signer, ledger, now, log }),
  });

  async function send(settlement: Settlement): Promise<void> {
    if (stopped) throw new UndeterminedError("The service is shutting down; nothing was sent");
    if (watcher.unmined() >= maxInFlight)
      throw new UndeterminedError("Too many recoveries are under way; try again");
    const { id } = settlement;
    const [head, tip, revert, gasMoney, minedTransactions] = await Promise.all([
      chain.head(),
      chain.suggestedTip(),
      chain.simulateForward(settlement, signer.address),
      chain.nativeBalance(signer.address),
      chain.transactionCount(signer.address),
    ]);
    const transaction = { to: network.facilitatorContract, ...forwardTransaction(settlement) };
    const fees = estimateFees(head, network, tip);
    if (revert !== undefined) {
      throw new UndeterminedError(
        `It cannot be forwarded now: the contract refuses (${describeRevert(revert)})`,
        {
          hints: [`Does ${signer.address} hold RECOVERER_ROLE, and has the contract got the value?`],
        },
      );
    }
    requireGasMoney(gasMoney, transaction.gas * fees.maxFeePerGas);

    // It may have sent something by hand: its txNonces go on from there.
    await ledger.introduceRecoverer(chainId, signer.address, minedTransactions);
    const batch = await ledger.sendForward(recoverer, id, (txNonce) =>
      signer.signTransaction({ chainId, nonce: txNonce, ...transaction, ...fees }),
    );
    if (batch === null) return;
    const { hash, txNonce } = batch.attempt;
    log.info({ network: network.name, settlement: id, hash, txNonce }, "recovering a payment");
    await watcher.send(batch);
  }

  function requireGasMoney(has: bigint, needs: bigint): void {
    if (has >= needs) return;
    throw new UndeterminedError(
      `The recoverer ${signer.address} has ${has} wei, and a forward may need ${needs}`,
      {
        hints: [`Send native coins to ${signer.address} on ${network.name}`],
      },
    );
  }

  return {
    address: signer.address,

    forward(settlement) {
      const sent = turn.then(() => send(settlement));
      turn = sent.catch(() => {});
      return sent;
    },

    async start() {
      await ledger.introduceRecoverer(chainId, signer.address, await chain.transactionCount(signer.address));
      await watcher.start();
    },

    async freeLostTxNonces() {
      const open = Map.groupBy(
        await ledger.openForwards(chainId, signer.address),
        ({ attempt }) => attempt.txNonce,
      );
      for (const txNonce of takenSince.keys()) if (!open.has(txNonce)) takenSince.delete(txNonce);
      if (open.size === 0) return;
      const next = await chain.transactionCount(signer.address);
      for (const [txNonce, shipments] of open) {
        const isTaken = txNonce < next;
        const receipts = isTaken ? await chain.receipts(shipments.map(({ attempt }) => attempt.hash)) : [];
        if (!isTaken || receipts.some((receipt) => receipt !== null)) {
          takenSince.delete(txNonce);
          continue;
        }
        const since = takenSince.get(txNonce) ?? now();
        takenSince.set(txNonce, since);
        if (now() - since < (lostAfterBlocks + network.confirmations) * network.blockTimeMs) continue;
        // Should the node be wrong and the forward be there after all, the contract refuses the second one.
        const [id] = shipments.flatMap(({ settlements }) => settlements.map((settlement) => settlement.id));
        if (id === undefined) continue;
        const problem = `another transaction of ${signer.address} took the forward's txNonce ${txNonce}`;
        log.error({ network: network.name, settlement: id, txNonce }, `${problem}; queueing it again`);
        await ledger.requeueForward(
          { ...recoverer, recoverer: signer.address, txNonce, hash: null },
          id,
          problem,
          now(),
        );
      }
    },

    async stop() {
      stopped = true;
      await turn;
      await watcher.stop();
    },
  };
}
