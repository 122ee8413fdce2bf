import type { ChainQueries, Effect } from "../../../chain/chain.ts";
import { calldataGas } from "../../../chain/fees.ts";
import type { Receipt } from "../../../chain/logs-and-receipts.ts";
import { balanceOf, selector } from "../../../chain/views.ts";
import {
  type Address,
  addressWord,
  byteWords,
  type Hex,
  sameAddress,
  uintWord,
} from "../../../protocol/hex.ts";
import {
  goesStraight,
  type SignedPayment,
  tokenSignature,
  unwrapErc6492,
  type WalletDeployment,
} from "../../../protocol/signed-payment.ts";
import {
  createTransactions,
  encodeArray,
  offset,
  type Route,
  wordDigits,
} from "../../on-chain/batch-transactions.ts";
import {
  authorizationKey,
  authorizationUsedTopic,
  decodeEvents,
  type PaymentEvent,
  readUses,
  type TransferEvent,
} from "../../on-chain/events.ts";
import { findPayoutAt } from "../../on-chain/payouts.ts";
import { type Payout, type Search, type SettleCall, usageOf } from "../../on-chain/settling.ts";
import { authorizationStateOf } from "./eip3009-state.ts";

/**
 * The gas limit of the token, and of the code at the payer's address, for one payment. Equals the facilitator contract's
 * PULL_GAS, so that a payment that fails in a batch also fails alone.
 */
const transferGas = 250_000n;

/*
 * Gas limits. Unused gas costs nothing, but running out reverts the whole transaction. So the limits let the code at every
 * payer's address burn all of PULL_GAS (250,000). In a batch they also cover the contract's second attempt if a recipient
 * cannot be paid, unless a third of the payers burn their gas as well.
 */

/**
 * `settle`, excluding calldata: 21,000 for the transaction, about 20,000 before the pull, 264,000 that the contract
 * requires for the pull (PULL_GAS and the 1/64 that a call cannot pass on), and 162,000 for the payout. It uses 108,000, or
 * 125,000 if the recipient has no balance yet.
 */
const settleGas = 500_000n;

/**
 * A payment directly to the payee, excluding calldata: 21,000 for the transaction, and the token's limit. It uses 86,000.
 */
const straightGas = 21_000n + transferGas;

/**
 * The deployment of the payer's wallet: DEPLOY_GAS (1,000,000) for the factory, the 1/64 that a call cannot pass on, 32,000
 * for the account that calls it, and the reserve that the contract requires. A plain wallet uses 401,000 in total.
 */
const deployGas = 1_150_000n;

/** `settleBatch` without its payments; the same limit, because the last pull must leave room for the payouts. */
const batchGas = 500_000n;

/**
 * `transferBatch` without its payments: 21,000 for the transaction, about 10,000 before the first payment, and the reserve
 * beyond PULL_GAS that the contract requires for the last one.
 */
const straightBatchGas = 60_000n;

/** A payment in a batch: PULL_GAS, and its balance check or its event. It uses 51,000 to 82,000. */
const paymentGas = () => 275_000n;

/**
 * `forwardReceived`, excluding calldata. It uses 156,000, plus the signature check by the payer's wallet, which took at
 * most PULL_GAS when the payment was made.
 */
const forwardGas = 450_000n;

const throughContract: Route = {
  alone: (call, { facilitatorContract: to }) => ({ to, data: encodeSettle(call) }),
  aloneGas: settleGas,
  batch: { encode: encodeSettleBatch, gas: batchGas, paymentGas },
};

const straight: Route = {
  alone: ({ payment }) => ({ to: payment.asset, data: encodeTransfer(payment) }),
  aloneGas: straightGas,
  batch: { encode: encodeTransferBatch, gas: straightBatchGas, paymentGas },
};

/** Deploys the payer's wallet first, in the same transaction. Such a payment cannot share a transaction with others. */
function deploying(deployment: WalletDeployment, rest: Route): Route {
  return {
    ...rest,
    alone(call, network) {
      const { facilitatorContract: to } = network;
      const settlement = goesStraight(call.payment, network)
        ? encodeTransferDirect(call)
        : encodeSettle(call);
      return { to, data: encodeDeployAndSettle(call, deployment, settlement) };
    },
    aloneGas: deployGas + settleGas,
  };
}

/** A payment directly to its payee is a call to the token; all others go through the contract. */
export const { transaction: settleTransaction, count: countBatch } = createTransactions((call, network) => {
  const route = goesStraight(call.payment, network) ? straight : throughContract;
  const deployment = unwrapErc6492(call.payment.signature);
  return deployment === undefined ? route : deploying(deployment, route);
});

/** The calldata and gas limit for paying out value that an authorization brought to the contract outside a settlement. */
export function forwardTransaction(call: SettleCall): { data: Hex; gas: bigint } {
  const data = encodeForwardReceived(call);
  return { data, gas: forwardGas + calldataGas(data) };
}

/**
 * The gas usage of a USDC payment that is settled alone to a recipient without a balance: see
 * `contracts/test/snapshots/gas.json`. Payments in a batch use half of that.
 */
export const usualSettle = usageOf(125_000n, { most: settleGas, bytes: 388 });

/** The same for a payment that is forwarded. */
export const usualForward = usageOf(162_000n, { most: forwardGas, bytes: 388 });

/*
 * Payments directly to the payee, with the token's `transferWithAuthorization`. Anyone can submit one, and the payee gets
 * the money whoever does.
 */

/**
 * The effect of such a payment. A transaction that does not revert is no proof: tokens with a transfer fee move another
 * amount, and some silently do nothing if the authorization was used.
 */
export function effectOf(payment: SignedPayment): Effect {
  const { asset, payer, payTo, nonce, limit } = payment;
  const used = authorizationStateOf(asset, payer, nonce);
  const held = balanceOf(asset, payTo);
  const transfer = { target: asset, data: encodeTransfer(payment), gas: Number(transferGas), changes: true };
  const gain = sameAddress(payer, payTo) ? 0n : limit;
  return {
    views: [used, held, transfer, used, held],
    isThere(results) {
      const [usedBefore, before, , usedAfter, after] = results.map(({ word }) => word && BigInt(word));
      if (before === undefined || after === undefined) return false;
      return usedBefore === 0n && usedAfter === 1n && after - before === gain;
    },
  };
}

/**
 * Reads which payments the logs of a transaction prove to have gone directly to the payee, whoever sent the transaction.
 *
 * @param isLone true if the transaction is ours and calls the token once: the token may then emit other logs between the use
 *   and its transfer. In any other transaction the transfer may belong to another payment, so only adjacent logs are a proof.
 */
export function readStraightPayments(
  receipt: Receipt,
  { isLone } = { isLone: false },
): (payment: SignedPayment) => boolean {
  let events: readonly PaymentEvent[] | undefined;
  let transfers: ReadonlyMap<string, TransferEvent> | undefined;
  return (payment) => {
    const { asset: token, payer, nonce: authorizationNonce, payTo, limit } = payment;
    events ??= decodeEvents(receipt);
    transfers ??= new Map(readUses(events).map(({ use, transfer }) => [authorizationKey(use), transfer]));
    const moved = transfers.get(authorizationKey({ token, payer, authorizationNonce }));
    if (moved !== undefined && sameAddress(moved.to, payTo) && moved.value === limit) return true;
    return isLone && provesLoneTransfer(events, payment);
  };
}

/** Returns true if the payment's is the only authorization used, and exactly one transfer matches the payment. */
function provesLoneTransfer(
  events: readonly PaymentEvent[],
  { asset: token, payer, nonce: authorizationNonce, payTo, limit }: SignedPayment,
): boolean {
  const [use, ...otherUses] = events.filter(({ name }) => name === "AuthorizationUsed");
  const [transfer, ...otherTransfers] = events.filter(
    (event) =>
      event.name === "Transfer" &&
      sameAddress(event.emitter, token) &&
      sameAddress(event.from, payer) &&
      sameAddress(event.to, payTo) &&
      event.value === limit,
  );
  return (
    use?.name === "AuthorizationUsed" &&
    authorizationKey(use) === authorizationKey({ token, payer, authorizationNonce }) &&
    otherUses.length === 0 &&
    transfer !== undefined &&
    otherTransfers.length === 0
  );
}

/** {@link Settling.findPayout} for these payments, whoever submitted them. */
export function findStraightPayout(chain: ChainQueries, search: Search): Promise<Payout | null> {
  const { asset: address, payer, nonce } = search.payment;
  const topics = [authorizationUsedTopic, `0x${addressWord(payer)}` as const, nonce];
  return findPayoutAt(chain, search, { address, topics }, (receipt) =>
    readStraightPayments(receipt)(search.payment) ? "settled" : undefined,
  );
}

/**
 * Hand-written calldata encoding for the facilitator contract and tokens: every verify encodes a payment, and viem's
 * encoder takes about twenty times as long. Tests compare it with viem and the generated ABI.
 */

const authorizationType = "(address,uint256,uint256,uint256,bytes32)";
const paymentTypes = `(address,${authorizationType},bytes,address)`;
const settleSelector = selector(`settle${paymentTypes}`);
const batchTypes = `(address,(address,(${authorizationType},bytes)[])[])`;
const settleBatchSelector = selector(`settleBatch${batchTypes}`);
const transferBatchSelector = selector(`transferBatch${batchTypes}`);
const deployAndSettleSelector = selector("deployAndSettle(address,address,bytes,bytes)");
const transferDirectSelector = selector(`transferDirect(address,(${authorizationType},bytes),address)`);
const forwardReceivedSelector = selector(`forwardReceived${paymentTypes}`);
const transferSelector = selector(
  "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)",
);

/** `settle(token, authorization, signature, recipient)` for one payment. */
export function encodeSettle(call: SettleCall): Hex {
  return `${settleSelector}${encodeAlone(call)}`;
}

/** `forwardReceived(token, authorization, signature, recipient)` for one payment. */
export function encodeForwardReceived(call: SettleCall): Hex {
  return `${forwardReceivedSelector}${encodeAlone(call)}`;
}

/** The token's `transferWithAuthorization`, which moves a payment directly to the payee. */
export function encodeTransfer({ payer, payTo, limit, window, nonce, signature }: SignedPayment): Hex {
  return `${transferSelector}${addressWord(payer)}${addressWord(payTo)}${uintWord(limit)}${windowWords(window)}${nonce.slice(2)}${offset(7 * wordDigits)}${byteWords(tokenSignature(signature))}`;
}

/**
 * `deployAndSettle(wallet, factory, factoryData, settlement)` for one payment from a wallet that is not deployed yet.
 * `settlement` is the calldata of another call to the facilitator contract.
 */
function encodeDeployAndSettle(
  { payment }: SettleCall,
  { factory, factoryCalldata }: WalletDeployment,
  settlement: Hex,
): Hex {
  const calldata = byteWords(factoryCalldata);
  const offsets = `${offset(4 * wordDigits)}${offset(4 * wordDigits + calldata.length)}`;
  return `${deployAndSettleSelector}${addressWord(payment.payer)}${addressWord(factory)}${offsets}${calldata}${byteWords(settlement)}`;
}

/** `transferDirect(token, payment, payee)` for one payment directly to the payee. */
function encodeTransferDirect({ payment }: SettleCall): Hex {
  return `${transferDirectSelector}${addressWord(payment.asset)}${offset(3 * wordDigits)}${addressWord(payment.payTo)}${encodePayment(payment)}`;
}

/**
 * `settleBatch(token, groups)` for payments of one asset: one group per recipient, in order of first appearance. The
 * payments of a group keep their order.
 */
export function encodeSettleBatch(asset: Address, calls: readonly SettleCall[]): Hex {
  return `${settleBatchSelector}${encodeGroups(asset, calls)}`;
}

/** `transferBatch(token, groups)`, the same for payments directly to the payee. */
export function encodeTransferBatch(asset: Address, calls: readonly SettleCall[]): Hex {
  return `${transferBatchSelector}${encodeGroups(asset, calls)}`;
}

function encodeGroups(asset: Address, calls: readonly SettleCall[]): string {
  const byRecipient = Map.groupBy(calls, ({ recipient }) => addressWord(recipient));
  const groups = [...byRecipient].map(([recipient, payments]) => {
    const encoded = payments.map(({ payment }) => encodePayment(payment));
    return `${recipient}${offset(2 * wordDigits)}${encodeArray(encoded)}`;
  });
  return `${addressWord(asset)}${offset(2 * wordDigits)}${encodeArray(groups)}`;
}

/** Returns true if our calldata is a single call to the token that moves one payment. */
export function isLoneTransfer(data: Hex): boolean {
  return data.toLowerCase().startsWith(transferSelector);
}

/** Returns true if our calldata settles several payments together: a revert then says nothing about any single one. */
export function settlesSeveral(data: Hex): boolean {
  return [settleBatchSelector, transferBatchSelector].some((batch) => data.toLowerCase().startsWith(batch));
}

/** Token, five words of authorization, offset of the signature, recipient; then the signature. */
function encodeAlone({ payment, recipient }: SettleCall): string {
  return `${addressWord(payment.asset)}${encodeAuthorization(payment)}${offset(8 * wordDigits)}${addressWord(recipient)}${byteWords(tokenSignature(payment.signature))}`;
}

function encodePayment(payment: SignedPayment): string {
  return `${encodeAuthorization(payment)}${offset(6 * wordDigits)}${byteWords(tokenSignature(payment.signature))}`;
}

function encodeAuthorization({ payer, limit, window, nonce }: SignedPayment): string {
  return `${addressWord(payer)}${uintWord(limit)}${windowWords(window)}${nonce.slice(2)}`;
}

/** Both bounds of the signed message are exclusive. */
function windowWords({ first, last }: SignedPayment["window"]): string {
  return `${uintWord(first - 1n)}${uintWord(last + 1n)}`;
}
