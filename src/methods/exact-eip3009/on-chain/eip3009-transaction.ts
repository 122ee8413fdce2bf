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
 * The most gas that the token may use for one payment, and with it the code at the payer's address: as much as the
 * facilitator contract gives it (PULL_GAS), so that a payment fails alone as it does in a batch.
 */
const transferGas = 250_000n;

/*
 * Gas limits. What a limit leaves over is not paid for, but running out reverts everything in the transaction. So
 * they let the code at every payer's address burn all it may, PULL_GAS (250,000). In a batch they also cover the
 * second attempt that the contract makes when a recipient cannot be paid, unless a third of the payers burn as well.
 */

/**
 * `settle`, calldata aside: 21,000 for the transaction, some 20,000 up to the pull, 264,000 that the contract wants
 * to see for it (PULL_GAS and the 64th that a call leaves behind), then 162,000 for the payout. 108,000 are used, and
 * 125,000 for a recipient that has nothing yet.
 */
const settleGas = 500_000n;

/**
 * A payment that goes straight to the payee, calldata aside: 21,000 for the transaction, and what the token
 * may use. 86,000 are used.
 */
const straightGas = 21_000n + transferGas;

/**
 * A wallet that is deployed first: DEPLOY_GAS (1,000,000) for its factory, the 64th that a call leaves behind, 32,000 for the account
 * that calls it, and what the contract wants to see beyond that. What a plain wallet takes in all: 401,000.
 */
const deployGas = 1_150_000n;

/** `settleBatch` without its payments: as above, since the last pull must leave room for the payouts. */
const batchGas = 500_000n;

/**
 * `transferBatch` without its payments: 21,000 for the transaction, some 10,000 up to the first payment, and what the
 * contract wants to see beyond PULL_GAS for the last.
 */
const straightBatchGas = 60_000n;

/** A payment in a batch: PULL_GAS, and its balance check or its event. 51,000 to 82,000 are used. */
const paymentGas = () => 275_000n;

/**
 * `forwardReceived`, calldata aside. 156,000 are used, and what the payer's wallet takes to check its signature, which was
 * PULL_GAS at most when it paid.
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

/** The wallet of the payer is deployed first, in the same transaction, which is this payment's alone. */
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

/** A payment straight to its payee is a call of the token; the others go through the contract. */
export const { transaction: settleTransaction, count: countBatch } = createTransactions((call, network) => {
  const route = goesStraight(call.payment, network) ? straight : throughContract;
  const deployment = unwrapErc6492(call.payment.signature);
  return deployment === undefined ? route : deploying(deployment, route);
});

/** The part of a transaction that pays out what an authorization brought to the contract by itself. */
export function forwardTransaction(call: SettleCall): { data: Hex; gas: bigint } {
  const data = encodeForwardReceived(call);
  return { data, gas: forwardGas + calldataGas(data) };
}

/**
 * The gas of a payment of USDC that is settled alone, for a recipient without a balance: see
 * `contracts/test/snapshots/gas.json`. Payments that are settled together take half of that.
 */
export const usualSettle = usageOf(125_000n, { most: settleGas, bytes: 388 });

/** The same of a payment that is forwarded. */
export const usualForward = usageOf(162_000n, { most: forwardGas, bytes: 388 });

/*
 * Payments that go straight to the payee, by the token's `transferWithAuthorization`. Anybody can submit
 * one, and whoever does, the payee has the money.
 */

/**
 * The effect of such a payment. A transaction that is not reverted does not prove it: tokens that charge a fee move another
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
 * Which payments the logs of a transaction prove to have gone straight to the payee, whoever sent it.
 *
 * @param isLone the transaction is ours and calls the token once: a token may then log between the use and its transfer.
 *   In any other transaction another payment may have made the transfer, so only a pair without a gap proves one.
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

/** Returns true if the only use of an authorization is the payment's, and exactly one transfer is its own. */
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

/** {@link Settling.findPayout} of these payments: whoever submitted it. */
export function findStraightPayout(chain: ChainQueries, search: Search): Promise<Payout | null> {
  const { asset: address, payer, nonce } = search.payment;
  const topics = [authorizationUsedTopic, `0x${addressWord(payer)}` as const, nonce];
  return findPayoutAt(chain, search, { address, topics }, (receipt) =>
    readStraightPayments(receipt)(search.payment) ? "settled" : undefined,
  );
}

/**
 * Calldata of the facilitator contract and of tokens, put together by hand: a payment is encoded for every verify, and
 * viem's encoder takes some twenty times as long. Tests hold it against viem and the generated ABI.
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

/** `settle(token, authorization, signature, recipient)` of one payment. */
export function encodeSettle(call: SettleCall): Hex {
  return `${settleSelector}${encodeAlone(call)}`;
}

/** `forwardReceived(token, authorization, signature, recipient)` of one payment. */
export function encodeForwardReceived(call: SettleCall): Hex {
  return `${forwardReceivedSelector}${encodeAlone(call)}`;
}

/** `transferWithAuthorization` of the token, which moves a payment straight to the payee. */
export function encodeTransfer({ payer, payTo, limit, window, nonce, signature }: SignedPayment): Hex {
  return `${transferSelector}${addressWord(payer)}${addressWord(payTo)}${uintWord(limit)}${windowWords(window)}${nonce.slice(2)}${offset(7 * wordDigits)}${byteWords(tokenSignature(signature))}`;
}

/**
 * `deployAndSettle(wallet, factory, factoryData, settlement)` of one payment, by a wallet that is not deployed yet: `settlement` is
 * a call of the contract too.
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

/** `transferDirect(token, payment, payee)` of one payment that goes straight to the payee. */
function encodeTransferDirect({ payment }: SettleCall): Hex {
  return `${transferDirectSelector}${addressWord(payment.asset)}${offset(3 * wordDigits)}${addressWord(payment.payTo)}${encodePayment(payment)}`;
}

/**
 * `settleBatch(token, groups)` of payments of one asset: one group per recipient, in the order in which recipients
 * first appear, each with its payments in the given order.
 */
export function encodeSettleBatch(asset: Address, calls: readonly SettleCall[]): Hex {
  return `${settleBatchSelector}${encodeGroups(asset, calls)}`;
}

/** `transferBatch(token, groups)`, the same of payments that go straight to the payee. */
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

/** Returns true if calldata of ours is one call of the token that moves one payment. */
export function isLoneTransfer(data: Hex): boolean {
  return data.toLowerCase().startsWith(transferSelector);
}

/** Returns true if calldata of ours settles several payments together, so that a revert says nothing about one of them. */
export function settlesSeveral(data: Hex): boolean {
  return [settleBatchSelector, transferBatchSelector].some((batch) => data.toLowerCase().startsWith(batch));
}

/** token, five words of authorization, where the signature is, recipient; then the signature */
function encodeAlone({ payment, recipient }: SettleCall): string {
  return `${addressWord(payment.asset)}${encodeAuthorization(payment)}${offset(8 * wordDigits)}${addressWord(recipient)}${byteWords(tokenSignature(payment.signature))}`;
}

function encodePayment(payment: SignedPayment): string {
  return `${encodeAuthorization(payment)}${offset(6 * wordDigits)}${byteWords(tokenSignature(payment.signature))}`;
}

function encodeAuthorization({ payer, limit, window, nonce }: SignedPayment): string {
  return `${addressWord(payer)}${uintWord(limit)}${windowWords(window)}${nonce.slice(2)}`;
}

/** Both bounds of the message are exclusive. */
function windowWords({ first, last }: SignedPayment["window"]): string {
  return `${uintWord(first - 1n)}${uintWord(last + 1n)}`;
}
