import type { Chain, ChainQueries, Transaction } from "../../../chain/chain.ts";
import { calldataGas } from "../../../chain/fees.ts";
import type { Receipt } from "../../../chain/logs-and-receipts.ts";
import { selector } from "../../../chain/views.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import { type Hex, sameAddress, uintWord } from "../../../protocol/hex.ts";
import { goesStraight } from "../../../protocol/signed-payment.ts";
import { approvalOf } from "../../approval.ts";
import { type Contract, createTransactions } from "../../on-chain/batch-transactions.ts";
import { authorizationKey, decodeEvents, type TransferEvent } from "../../on-chain/events.ts";
import {
  findContractPayout,
  payoutKey,
  provesForwarding,
  readForwardLimit,
  receivedOf,
} from "../../on-chain/payouts.ts";
import { planApproval, prepare } from "../../on-chain/prepare-approval.ts";
import {
  amountOf,
  type LocalContract,
  type Payout,
  type Plan,
  type Recovery,
  type Search,
  type SettleCall,
  type SettlementProof,
  type Settling,
  usageOf,
} from "../../on-chain/settling.ts";
import { createIsUsed } from "../../on-chain/use-reader.ts";
import { exactProxyAddress, permit2Address, uptoProxyAddress } from "../permit.ts";
import { exactPermit2, permitOf, uptoPermit2 } from "../permit2-payload.ts";
import {
  describePermit2Revert,
  encodeForward,
  encodeProxySettle,
  encodeSettle,
  encodeSettleBatch,
  settlesSeveral,
} from "./permit2-calls.ts";
import { bitOf, explain, explainFirst, nonceUse, stateOf } from "./permit2-state.ts";
import { findDirectSubmission, findSubmission } from "./submissions.ts";

/*
 * Gas limits. Unused gas costs nothing, but running out reverts the whole transaction. So the limits let the code at every
 * payer's address burn all of PULL_GAS (250,000), which it shares with the token and Permit2.
 */

/** `settlePermit2`, excluding calldata. It uses 130,000, or 155,000 if the recipient has no balance yet. */
const settleGas = 550_000n;

/** The extra gas for an EIP-2612 approval that is submitted with a payment; USDC uses 38,000. */
const approvalGas = 80_000n;

/** `settlePermit2Batch` without its payments; the same limit, because the last pull must leave room for the payouts. */
const batchGas = 550_000n;

/** A payment in a batch: PULL_GAS, its balance checks and its event. */
const batchPaymentGas = 300_000n;

/** `forwardReceivedWithPermit2`, excluding calldata, including the signature check by the payer's wallet. */
const forwardGas = 450_000n;

const approvalGasOf = ({ payment }: SettleCall) => (approvalOf(payment) === undefined ? 0n : approvalGas);

/** `settlePermit2` for one payment, otherwise `settlePermit2Batch`, for both schemes and routes. */
const { transaction: settleTransaction, count: countBatch } = createTransactions((one) => ({
  alone: (call, network) => ({ to: network.facilitatorContract, data: encodeSettle(call, network) }),
  aloneGas: settleGas + approvalGasOf(one),
  batch: {
    encode: (_asset, calls, network) => encodeSettleBatch(calls, network),
    gas: batchGas,
    paymentGas: (call) => batchPaymentGas + approvalGasOf(call),
  },
}));

/** The transaction that pays out a payment's value after others have submitted it to the contract. */
function forwardTransaction(call: SettleCall, { facilitatorContract: to }: Contract): Transaction {
  const data = encodeForward(call);
  return { to, data, gas: forwardGas + calldataGas(data) };
}

/** The gas usage of a plain payment that is settled alone to a recipient without a balance, and of one that is forwarded. */
const usualSettle = usageOf(155_000n, { most: settleGas, bytes: 676 });
const usualForward = usageOf(170_000n, { most: forwardGas, bytes: 516 });

/** `forwardReceivedWithPermit2`, for payments of scheme "exact" that others have submitted to the proxy. */
const permit2Recovery: Recovery = {
  transaction: forwardTransaction,
  usual: usualForward,
  proves: (receipt, { facilitatorContract }, call) =>
    provesForwarding("Permit2Forwarded", receipt, facilitatorContract, receivedOf(call)),
  limit: readForwardLimit,
  findDirectSubmission,
};

async function plan(
  chain: Chain,
  asked: SettleCall,
  isUnderWay?: () => Promise<boolean>,
): Promise<Plan | Invalid> {
  const call = await prepare(chain, asked, isUnderWay);
  if ("reason" in call) return call;
  return { call, transaction: settleTransaction([call], chain.network), ...planApproval(call) };
}

/** Stand-ins for contracts of public chains; only local chains load their code. */
const localContracts: readonly LocalContract[] = [
  {
    address: permit2Address,
    code: async () => (await import("../../../contracts/mockPermit2.ts")).mockPermit2DeployedBytecode,
  },
  {
    address: exactProxyAddress,
    code: async () =>
      (await import("../../../contracts/mockPermit2.ts")).mockExactPermit2ProxyDeployedBytecode,
  },
  {
    address: uptoProxyAddress,
    code: async () =>
      (await import("../../../contracts/mockPermit2.ts")).mockUptoPermit2ProxyDeployedBytecode,
  },
];

const invalidateSelector = selector("invalidateUnorderedNonces(uint256,uint256)");

/** For both schemes, because they share a nonce space. */
const isUsed = createIsUsed(nonceUse);

/**
 * Settles Permit2 payments with the facilitator contract, which calls the x402 proxy. The money goes directly to the
 * payee, or through the contract.
 */
function createPermit2Settling(method: string, recovery?: Recovery): Settling {
  return {
    method,

    transaction: settleTransaction,
    batchKey: ({ payment }, network) =>
      `${payment.asset.toLowerCase()} ${goesStraight(payment, network) ? "straight" : "through the contract"}`,
    count: countBatch,
    settlesSeveral,
    usual: usualSettle,

    prove: readSettlements,
    findPayout,

    stateOf,
    explain,
    plan,
    explainFirst,
    isUsed,

    localContracts,
    async submission(payment) {
      const permit = permitOf(payment);
      const data = encodeProxySettle(permit, payment.signature, permit.amount);
      return { to: permit.spender, data, sender: permit.facilitator };
    },
    async cancellation(payment) {
      const { word, bit } = bitOf(payment);
      const data: Hex = `${invalidateSelector}${uintWord(word)}${uintWord(bit)}`;
      return { to: permit2Address, data, sender: payment.payer };
    },

    async bringApproval(kind, payment, payer) {
      // Loaded lazily: the service never needs it.
      const { bringApproval } = await import("../../on-chain/bring-approval.ts");
      return bringApproval(kind, payment, payer);
    },

    ...(recovery !== undefined && { recovery }),
  };
}

export const exactPermit2Settling = createPermit2Settling(exactPermit2, permit2Recovery);

/** Without recovery: only the facilitator contract can submit these payments. */
export const uptoPermit2Settling = createPermit2Settling(uptoPermit2);

/**
 * Reads which settlements a receipt proves to be settled or failed.
 *
 * The proof of success is two logs: `Permit2Settled` from the facilitator contract, with the claimed amount and recipient,
 * and the token's own `Transfer` of that amount from the payer to the signed payee. Each `Transfer` proves one settlement.
 * The proxies' event is no proof because it names no payment, and a used nonce is none because it may have been canceled.
 * The proof of failure is `Permit2SettlementFailed`. The receipt of a reverted transaction proves nothing about single
 * settlements.
 */
function readSettlements(
  receipt: Receipt,
  network: Contract,
): { find(call: SettleCall): SettlementProof | undefined } {
  const claimed = new Map<string, number>();
  const failed = new Map<string, Hex>();
  const moved = new Map<string, number>();
  for (const event of decodeEvents(receipt)) {
    const isOurs = sameAddress(event.emitter, network.facilitatorContract);
    if (event.name === "Permit2Settled" && isOurs) count(claimed, payoutKey(event), 1);
    else if (event.name === "Permit2SettlementFailed" && isOurs)
      failed.set(authorizationKey(event), event.reason);
    else if (event.name === "Transfer") count(moved, transferKey(event), 1);
  }
  /** Proven payments, so that repeated calls return the same result without using up another transfer. */
  const proven = new Set<string>();

  return {
    find(call) {
      const { payment } = call;
      const { asset: token, ...received } = receivedOf(call);
      const payout = payoutKey({ token, ...received });
      if (proven.has(payout)) return { settled: true };
      const transfer = transferKey({
        emitter: payment.asset,
        from: payment.payer,
        to: payment.payTo,
        value: amountOf(call),
      });
      if ((claimed.get(payout) ?? 0) > 0 && (moved.get(transfer) ?? 0) > 0) {
        count(claimed, payout, -1);
        count(moved, transfer, -1);
        proven.add(payout);
        return { settled: true };
      }
      const reason = failed.get(authorizationKey({ token, ...received }));
      return reason && { settled: false, failure: describePermit2Revert(reason) };
    },
  };
}

/** {@link Settling.findPayout}: our own transaction, or anyone's if the payment goes directly to its payee. */
async function findPayout(chain: ChainQueries, search: Search): Promise<Payout | null> {
  const { payment } = search;
  const ours = await findContractPayout("Permit2Forwarded", readSettlements, chain, search);
  if (ours !== null) return ours;
  // Only the facilitator contract can submit a payment of scheme "upto".
  if (payment.method === uptoPermit2 || !goesStraight(payment, chain.network)) return null;
  const submission = await findSubmission(chain, search);
  if (submission === null) return null;
  const { transactionHash: hash, blockNumber, blockHash } = submission;
  return { kind: "settled", hash, blockNumber, blockHash };
}

function transferKey({
  emitter,
  from,
  to,
  value,
}: Pick<TransferEvent, "emitter" | "from" | "to" | "value">): string {
  return `${emitter} ${from} ${to} ${value}`.toLowerCase();
}

function count(counts: Map<string, number>, key: string, by: 1 | -1): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
