import { selector } from "../../../chain/views.ts";
import { type Address, addressWord, byteWords, type Hex, uintWord } from "../../../protocol/hex.ts";
import {
  type SignedPayment,
  tokenSignature,
  type WalletDeployment,
} from "../../../protocol/signed-payment.ts";
import { encodeArray, offset, wordDigits } from "../../on-chain/batch-transactions.ts";
import type { SettleCall } from "../../on-chain/settling.ts";

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

/** `transferWithAuthorization` of the token, which moves a payment straight to where it was signed to. */
export function encodeTransfer({ payer, payTo, limit, window, nonce, signature }: SignedPayment): Hex {
  return `${transferSelector}${addressWord(payer)}${addressWord(payTo)}${uintWord(limit)}${windowWords(window)}${nonce.slice(2)}${offset(7 * wordDigits)}${byteWords(tokenSignature(signature))}`;
}

/**
 * `deployAndSettle(wallet, factory, factoryData, settlement)` of one payment, by a wallet that is not deployed yet: `settlement` is
 * a call of the contract too.
 */
export function encodeDeployAndSettle(
  { payment }: SettleCall,
  { factory, factoryCalldata }: WalletDeployment,
  settlement: Hex,
): Hex {
  const calldata = byteWords(factoryCalldata);
  const offsets = `${offset(4 * wordDigits)}${offset(4 * wordDigits + calldata.length)}`;
  return `${deployAndSettleSelector}${addressWord(payment.payer)}${addressWord(factory)}${offsets}${calldata}${byteWords(settlement)}`;
}

/** `transferDirect(token, payment, payee)` of one payment that goes straight to where it was signed to. */
export function encodeTransferDirect({ payment }: SettleCall): Hex {
  return `${transferDirectSelector}${addressWord(payment.asset)}${offset(3 * wordDigits)}${addressWord(payment.payTo)}${encodePayment(payment)}`;
}

/**
 * `settleBatch(token, groups)` of payments of one asset: one group per recipient, in the order in which recipients
 * first appear, each with its payments in the given order.
 */
export function encodeSettleBatch(asset: Address, calls: readonly SettleCall[]): Hex {
  return `${settleBatchSelector}${encodeGroups(asset, calls)}`;
}

/** `transferBatch(token, groups)`, the same of payments that go straight to where they were signed to. */
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

/** Whether calldata of ours settles several payments together, so that a revert says nothing about one of them. */
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
