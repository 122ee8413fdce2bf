import { type Chain, leastTransactionCount } from "../../chain/chain.ts";
import { estimateFees } from "../../chain/fees.ts";
import { describeRevert, type Revert } from "../../chain/revert.ts";
import type { Signer } from "../../chain/signing/local-signer.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import type { Recovery } from "../../methods/on-chain/settling.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { ServiceLog } from "../../observe/log/logger.ts";
import { type Address, sameAddress } from "../../protocol/hex.ts";
import { formatAmount, unitsOf } from "../../protocol/token-units.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { growingPause } from "../../util/waiting.ts";
import { closeEmpty, createFill, createReplace } from "./replacement.ts";
import { callOf, chainOf, networkOf, type Outcomes, type TransactionStore } from "./slot.ts";
import { createWatcher } from "./watcher.ts";

/** Pays out the value of direct submissions in the facilitator contract, with one key on one network. */
export type Recoverer = {
  readonly address: Address;
  /**
   * Signs, stores and broadcasts the forward of a queued recovery, which is then watched until the chain has decided it. Does
   * nothing if it is not queued: another instance may have sent it. The caller guarantees the proof: the contract cannot tell a
   * used authorization from a canceled one.
   *
   * @throws UndeterminedError when it cannot be sent now; nothing was signed then, and it stays queued.
   */
  forward(settlement: Settlement): Promise<void>;
  /**
   * Continues what an earlier process left in flight.
   *
   * @param mined how many of its transactions are mined, if known; otherwise the chain is asked
   */
  start(mined?: number): Promise<void>;
  /** Waits for transactions that are being signed. Those in flight stay in the ledger. */
  stop(): Promise<void>;
};

export type RecovererOptions = {
  chain: Chain;
  signer: Signer;
  ledger: Ledger;
  ways: WaysToPay;
  outcomes: Outcomes;
  now: () => number;
  log: ServiceLog;
};

/** Minimum block times before a reverted forward is tried again: people have to fix causes such as a missing role. */
const retryAfterBlocks = 30;

/** The maximum number of unmined transactions; nodes guarantee only 16 per account. */
const maxInFlight = 16;

export function createRecoverer(options: RecovererOptions): Recoverer {
  const { chain, signer, ledger, ways, outcomes, now, log } = options;
  const { network } = chain;
  const { chainId } = network;
  const recoverer = { chainId, address: signer.address };
  let turn: Promise<void> = Promise.resolve();
  let stopped = false;

  const store = createForwardStore(options);
  const watcher = createWatcher({
    chain,
    ways,
    store,
    outcomes,
    now,
    log,
    account: signer.address,
    onRoom: () => {},
    replace: createReplace({ chain, signer, ways, store, now, log }),
    fill: createFill({ chain, signer, store }),
  });

  async function send(settlement: Settlement): Promise<void> {
    if (stopped) throw new UndeterminedError("The service is shutting down; nothing was sent");
    if (watcher.unmined() >= maxInFlight || watcher.isFull())
      throw new UndeterminedError("Too many recoveries are under way; try again");
    const { id, asset, method } = settlement;
    const { recovery } = ways.settlingOf(method);
    if (recovery === undefined) throw new Error(`payments by ${method} are not submitted by others`);
    const call = callOf(settlement, network);
    const transaction = recovery.transaction(call, networkOf(network, settlement));
    // Read before the chain is asked: a forward mined in between is counted twice rather than not at all.
    const underWay = await valueUnderWay(asset);
    const [head, tip, limitObstacle, revert, gasMoney, minedTransactions] = await Promise.all([
      chain.head(),
      chain.suggestedTip(),
      findLimitObstacle(chainOf(chain, settlement), recovery, settlement, underWay),
      chain.simulateFrom(signer.address, transaction, id),
      chain.nativeBalance(signer.address),
      leastTransactionCount(chain, signer.address),
    ]);
    const fees = estimateFees(head, network, tip);
    if (limitObstacle !== undefined) {
      throw new UndeterminedError(`It cannot be forwarded now: ${limitObstacle}`);
    }
    if (revert !== undefined) throw refusal(revert, signer.address);
    requireGasMoney(gasMoney, transaction.gas * fees.maxFeePerGas, {
      account: signer.address,
      network: network.name,
    });

    // The account may have sent transactions by hand; its txNonces continue after them.
    await ledger.recoveries.introduceRecoverer(chainId, signer.address, minedTransactions);
    const batch = await ledger.recoveries.sendForward(recoverer, id, (txNonce) =>
      signer.signTransaction({ chainId, nonce: txNonce, ...transaction, ...fees }),
    );
    if (batch === null) return;
    const { hash, txNonce } = batch.attempt;
    log.info({ network: network.name, settlement: id, hash, txNonce }, "recovering a payment");
    await watcher.send(batch);
  }

  /** How much of the contract's limit for an asset is needed by unmined forwards. */
  async function valueUnderWay(asset: Address): Promise<bigint> {
    const open = await ledger.recoveries.openForwards(chainId, signer.address);
    const settlements = new Map(open.flatMap((batch) => batch.settlements).map((one) => [one.id, one]));
    return [...settlements.values()]
      .filter((one) => sameAddress(one.asset, asset))
      .reduce((sum, { amount }) => sum + amount, 0n);
  }

  return {
    address: signer.address,

    forward(settlement) {
      const sent = turn.then(() => send(settlement));
      turn = sent.catch(() => {});
      return sent;
    },

    async start(mined) {
      const txNonce = mined ?? (await leastTransactionCount(chain, signer.address));
      await ledger.recoveries.introduceRecoverer(chainId, signer.address, txNonce);
      await watcher.start();
    },

    async stop() {
      stopped = true;
      await turn;
      await watcher.stop();
    },
  };
}

/** The store for the forwards of one recoverer. */
function createForwardStore(options: RecovererOptions): TransactionStore {
  const { chain, signer, ledger, now, log } = options;
  const { network } = chain;
  const { chainId } = network;
  return {
    open: () => ledger.recoveries.openForwards(chainId, signer.address),
    next: async () => (await ledger.claims.nextTxNonce(chainId, signer.address)) ?? 0,
    concluded: (range) => ledger.recoveries.concludedForwards(chainId, signer.address, range),
    reopen: (transactions) => ledger.recoveries.reopenForwards(chainId, signer.address, transactions),
    fillTxNonce: ledger.outcomes.fillTxNonce,
    addAttempt: ledger.claims.addAttempt,
    // A forward takes nothing from a payer's balance, so there is no reservation to release.
    noteMined: async () => {},

    async conclude({ operator, ...mined }, conclusions) {
      if (conclusions.length === 0) await ledger.outcomes.conclude({ operator, ...mined }, []);
      for (const conclusion of conclusions) {
        const { id, state } = conclusion;
        const about = { network: network.name, settlement: id, hash: mined.hash };
        const forward = { ...mined, recoverer: operator };
        if (state === "settled") {
          await ledger.recoveries.concludeForward(forward, id);
          log.info(about, "a payment was recovered");
        } else {
          const { failure } = conclusion;
          // A wallet can refuse only once the forward is mined, and each try costs gas, so the pauses grow.
          const failedAt = (await ledger.claims.find(id))?.concludedAt ?? now();
          const nextTry = now() + growingPause(now() - failedAt, retryAfterBlocks * network.blockTimeMs);
          await ledger.recoveries.requeueForward(forward, id, failure, nextTry);
          log.error(about, `${failure}; trying again`);
        }
      }
    },

    async sendAgain({ txNonce, settlements }) {
      if (settlements.length === 0)
        await closeEmpty(ledger.claims, { chainId, operator: signer.address, txNonce });
      const problem = `another transaction of ${signer.address} took the forward's txNonce ${txNonce}`;
      for (const { id } of settlements) {
        await ledger.recoveries.requeueForward(
          { chainId, recoverer: signer.address, txNonce, hash: null },
          id,
          problem,
          now(),
        );
      }
    },
  };
}

function refusal(revert: Revert, account: Address): UndeterminedError {
  if (revert.kind === "custom" && revert.name === "AuthorizationNotSigned") {
    return new UndeterminedError(
      "It cannot be forwarded now: the payer's wallet does not stand by its signature any more; unless that changes, only the admin's rescue can pay it out",
    );
  }
  return new UndeterminedError(
    `It cannot be forwarded now: the contract refuses (${describeRevert(revert)})`,
    {
      hints: [`Does ${account} hold RECOVERER_ROLE, and has the contract got the value?`],
    },
  );
}

function requireGasMoney(
  has: bigint,
  needs: bigint,
  { account, network }: { account: Address; network: string },
): void {
  if (has >= needs) return;
  throw new UndeterminedError(`The recoverer ${account} has ${has} wei, and a forward may need ${needs}`, {
    hints: [`Send native coins to ${account} on ${network}`],
  });
}

/**
 * Explains to the operator why the contract's limit prevents a payment from being forwarded now; undefined if it does not.
 *
 * @param underWay the part of the limit that unmined forwards of the same asset will use
 */
export async function findLimitObstacle(
  chain: Chain,
  recovery: Pick<Recovery, "limit">,
  { asset, amount: value }: Pick<Settlement, "asset" | "amount">,
  underWay = 0n,
): Promise<string | undefined> {
  const { limit, available } = await recovery.limit(chain, asset);
  const left = available > underWay ? available - underWay : 0n;
  if (value <= left) return undefined;
  const configured = chain.network.assets.find(({ address }) => sameAddress(address, asset));
  const show = (units: bigint) => formatAmount(units, configured && unitsOf(configured));
  const [needed, whole] = [show(value), show(limit)];
  return value > limit
    ? `its ${needed} are more than the contract's forward limit, ${whole}: the admin has to raise it (setForwardLimit)`
    : `its ${needed} are more than the ${show(left)} left of the contract's forward limit, ${whole}, which comes back within 24 hours: it waits for that, or for the admin to raise it (setForwardLimit)`;
}
