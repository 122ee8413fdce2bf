import { selector } from "../../../chain/views.ts";
import { type Address, addressWord, byteWords, type Hex, uintWord } from "../../../protocol/hex.ts";
import { type Approval, approvalWords } from "../../approval.ts";
import { encodeArray, offset, wordDigits } from "../../on-chain/batch-transactions.ts";
import { type ChannelConfig, configWords, type VoucherClaim } from "../channel.ts";

/*
 * Hand-written calldata encoding for the settlement contract: loading viem's encoder would make the service start too slowly.
 * A test compares it with viem and the ABI.
 */

const config = "(address,address,address,address,address,uint40,bytes32)";
const claims = `((${config},uint128),bytes,uint128)[]`;

const selectors = {
  deposit: selector(`deposit(${config},uint128,address,bytes)`),
  claim: selector(`claim(${claims})`),
  claimWithSignature: selector(`claimWithSignature(${claims},bytes)`),
  settle: selector("settle(address,address)"),
  refundWithSignature: selector(`refundWithSignature(${config},uint128,uint256,bytes)`),
  initiateWithdraw: selector(`initiateWithdraw(${config},uint128)`),
  multicall: selector("multicall(bytes[])"),
  aggregate3: selector("aggregate3((address,bool,bytes)[])"),
} as const;

/** `deposit(config, amount, collector, collectorData)` */
export function encodeDeposit(
  channel: ChannelConfig,
  { amount, collector, data }: { amount: bigint; collector: Address; data: Hex },
): Hex {
  const head = `${configWords(channel)}${uintWord(amount)}${addressWord(collector)}`;
  return `${selectors.deposit}${head}${offset(10 * wordDigits)}${byteWords(data)}`;
}

/** The data for the EIP-3009 collector: the fields of the authorization that are not arguments of `deposit`. */
export function encodeErc3009Data(
  { validAfter, validBefore, salt }: { validAfter: bigint; validBefore: bigint; salt: Hex },
  signature: Hex,
): Hex {
  const words = `${uintWord(validAfter)}${uintWord(validBefore)}${salt.slice(2)}`;
  return `0x${words}${offset(4 * wordDigits)}${byteWords(signature)}`;
}

/** The data for the Permit2 collector, which submits an EIP-2612 approval first if there is one. */
export function encodePermit2Data(
  { nonce, deadline }: { nonce: Hex; deadline: bigint },
  signature: Hex,
  approval?: Approval,
): Hex {
  const bytes = byteWords(signature);
  const offsets = `${offset(4 * wordDigits)}${offset(4 * wordDigits + bytes.length)}`;
  return `0x${nonce.slice(2)}${uintWord(deadline)}${offsets}${bytes}${byteWords(encodeApproval(approval))}`;
}

/** Value, deadline, v, r and s, as the collector reads them. */
function encodeApproval(approval: Approval | undefined): Hex {
  if (approval === undefined) return "0x";
  const [terms, rs, v] = approvalWords(approval);
  return `0x${terms}${v}${rs}`;
}

/** Multicall3's `aggregate3`: a sequence of calls, each with a flag that allows it to fail. */
export function encodeCalls(calls: readonly { to: Address; data: Hex; mayFail: boolean }[]): Hex {
  const encoded = calls.map(
    ({ to, data, mayFail }) =>
      `${addressWord(to)}${uintWord(mayFail ? 1n : 0n)}${offset(3 * wordDigits)}${byteWords(data)}`,
  );
  return `${selectors.aggregate3}${offset(wordDigits)}${encodeArray(encoded)}`;
}

function encodeRows(rows: readonly VoucherClaim[]): string {
  return encodeArray(
    rows.map(({ channel, maxClaimableAmount, signature, totalClaimed }) => {
      const head = `${configWords(channel)}${uintWord(maxClaimableAmount)}`;
      return `${head}${offset(10 * wordDigits)}${uintWord(totalClaimed)}${byteWords(signature)}`;
    }),
  );
}

/** `claim(claims)`, which only the receiver or its authorizer may call: for simulations. */
export function encodeClaim(rows: readonly VoucherClaim[]): Hex {
  return `${selectors.claim}${offset(wordDigits)}${encodeRows(rows)}`;
}

/** `claimWithSignature(claims, authorizerSignature)` */
export function encodeClaimWithSignature(rows: readonly VoucherClaim[], signature: Hex): Hex {
  const encoded = encodeRows(rows);
  const offsets = `${offset(2 * wordDigits)}${offset(2 * wordDigits + encoded.length)}`;
  return `${selectors.claimWithSignature}${offsets}${encoded}${byteWords(signature)}`;
}

/** `settle(receiver, token)` */
export function encodeSettleOwed(receiver: Address, token: Address): Hex {
  return `${selectors.settle}${addressWord(receiver)}${addressWord(token)}`;
}

/** `refundWithSignature(config, amount, nonce, signature)` */
export function encodeRefund(
  channel: ChannelConfig,
  { amount, nonce, signature }: { amount: bigint; nonce: bigint; signature: Hex },
): Hex {
  const head = `${configWords(channel)}${uintWord(amount)}${uintWord(nonce)}`;
  return `${selectors.refundWithSignature}${head}${offset(10 * wordDigits)}${byteWords(signature)}`;
}

/** `initiateWithdraw(config, amount)`, with which a payer announces a withdrawal. */
export function encodeInitiateWithdraw(channel: ChannelConfig, amount: bigint): Hex {
  return `${selectors.initiateWithdraw}${configWords(channel)}${uintWord(amount)}`;
}

/** `multicall(data)`: several calls to the contract, all or nothing. */
export function encodeMulticall(calls: readonly Hex[]): Hex {
  return `${selectors.multicall}${offset(wordDigits)}${encodeArray(calls.map(byteWords))}`;
}
