import {
  type Address,
  addressWord,
  byteWords,
  type Hex,
  keccak256Text,
  uintWord,
} from "../../protocol/hex.ts";
import type { SettleCall } from "./calls.ts";

/**
 * Calldata of the facilitator contract and of wallets, put together by hand: `settle` is encoded for every verify, and viem's
 * encoder takes some twenty times as long. Tests hold it against viem and the generated ABI.
 */

/** The four bytes that choose a function, or name an error: the start of keccak256 of its signature. */
export function selector(signature: string): Hex {
  return `0x${keccak256Text(signature).slice(2, 10)}`;
}

const authorizationType = "(address,uint256,uint256,uint256,bytes32)";
const paymentTypes = `(address,${authorizationType},bytes,address)`;
const settleSelector = selector(`settle${paymentTypes}`);
const settleBatchSelector = selector(`settleBatch(address,(address,(${authorizationType},bytes)[])[])`);
const forwardReceivedSelector = selector(`forwardReceived${paymentTypes}`);

/** What a wallet is asked by, and what it answers to say yes (EIP-1271). */
export const isValidSignatureSelector = selector("isValidSignature(bytes32,bytes)");

const wordDigits = 64;

/** The offset of something, counted in digits so far, as the word that points to it. */
const offset = (digits: number) => uintWord(BigInt(digits / 2));

/** `settle(token, authorization, signature, recipient)` of one payment. */
export function encodeSettle(call: SettleCall): Hex {
  return `${settleSelector}${encodeAlone(call)}`;
}

/** `forwardReceived(token, authorization, signature, recipient)` of one payment. */
export function encodeForwardReceived(call: SettleCall): Hex {
  return `${forwardReceivedSelector}${encodeAlone(call)}`;
}

/**
 * `settleBatch(token, groups)` of payments of one asset: one group per recipient, in the order in which recipients
 * first appear, each with its payments in the given order.
 */
export function encodeSettleBatch(asset: Address, calls: readonly SettleCall[]): Hex {
  const byRecipient = Map.groupBy(calls, ({ recipient }) => addressWord(recipient));
  const groups = [...byRecipient].map(([recipient, payments]) => {
    const encoded = payments.map(encodePayment);
    return `${recipient}${offset(2 * wordDigits)}${encodeArray(encoded)}`;
  });
  return `${settleBatchSelector}${addressWord(asset)}${offset(2 * wordDigits)}${encodeArray(groups)}`;
}

/** Whether calldata of ours settles several payments together, so that a revert says nothing about one of them. */
export function settlesSeveral(data: Hex): boolean {
  return data.toLowerCase().startsWith(settleBatchSelector);
}

/** `isValidSignature(digest, signature)` of a contract wallet (EIP-1271). */
export function encodeIsValidSignature(digest: Hex, signature: Hex): Hex {
  return `${isValidSignatureSelector}${digest.slice(2)}${offset(2 * wordDigits)}${byteWords(signature)}`;
}

/** token, five words of authorization, where the signature is, recipient; then the signature */
function encodeAlone({ asset, authorization, signature, recipient }: SettleCall): string {
  return `${addressWord(asset)}${encodeAuthorization(authorization)}${offset(8 * wordDigits)}${addressWord(recipient)}${byteWords(signature)}`;
}

function encodePayment({ authorization, signature }: SettleCall): string {
  return `${encodeAuthorization(authorization)}${offset(6 * wordDigits)}${byteWords(signature)}`;
}

function encodeAuthorization({
  from,
  value,
  validAfter,
  validBefore,
  nonce,
}: SettleCall["authorization"]): string {
  return `${addressWord(from)}${uintWord(value)}${uintWord(validAfter)}${uintWord(validBefore)}${nonce.slice(2)}`;
}

/** An array of elements of varying length: how many, where each begins (counted from behind that), and they. */
function encodeArray(elements: readonly string[]): string {
  let position = elements.length * wordDigits;
  let offsets = "";
  for (const element of elements) {
    offsets += offset(position);
    position += element.length;
  }
  return `${uintWord(BigInt(elements.length))}${offsets}${elements.join("")}`;
}
