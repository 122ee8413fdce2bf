import { decodeParameters, decodeRevert, describeRevert, type Revert } from "../../../chain/revert.ts";
import { selector } from "../../../chain/views.ts";
import { addressWord, byteWords, type Hex, uintWord, wordAt } from "../../../protocol/hex.ts";
import { goesStraight } from "../../../protocol/signed-payment.ts";
import { approvalOf, approvalWords, withoutApproval } from "../../approval.ts";
import { type Contract, encodeArray, offset, wordDigits } from "../../on-chain/batch-transactions.ts";
import { amountOf, type SettleCall } from "../../on-chain/settling.ts";
import { exactProxyAddress, type Permit } from "../permit.ts";
import { permitOf, uptoPermit2 } from "../permit2-payload.ts";

/**
 * Hand-written calldata encoding for the facilitator contract and the x402 proxies: every verify encodes a payment, and
 * viem's encoder takes about twenty times as long. Tests compare it with viem and the generated ABI.
 */

const payment = "(address,uint256,uint256,uint256,uint256,uint256,bytes,bytes)";
const group = `(address,bool,bool,address,${payment}[])`;
const settleSelector = selector(`settlePermit2(${group})`);
const settleBatchSelector = selector(`settlePermit2Batch(${group}[])`);
const forwardSelector = selector(`forwardReceivedWithPermit2(address,${payment},address)`);

const approval = "(uint256,uint256,bytes32,bytes32,uint8)";
const permit = "((address,uint256),uint256,uint256)";
const proxySelectors = {
  exact: selector(`settle(${permit},address,(address,uint256),bytes)`),
  upto: selector(`settle(${permit},uint256,address,(address,address,uint256),bytes)`),
  exactWithPermit: selector(`settleWithPermit(${approval},${permit},address,(address,uint256),bytes)`),
} as const;

/** `settlePermit2(group)` for one payment. */
export function encodeSettle(call: SettleCall, network: Contract): Hex {
  return `${settleSelector}${offset(wordDigits)}${encodeGroup([call], network)}`;
}

/**
 * `settlePermit2Batch(groups)`: one group for each asset, scheme, route and recipient, in order of first appearance. The
 * payments of a group keep their order.
 */
export function encodeSettleBatch(calls: readonly SettleCall[], network: Contract): Hex {
  const groups = Map.groupBy(calls, (call) => groupHead(call, network)).values();
  const encoded = [...groups].map((calls) => encodeGroup(calls, network));
  return `${settleBatchSelector}${offset(wordDigits)}${encodeArray(encoded)}`;
}

/** `forwardReceivedWithPermit2(token, payment, recipient)` for one payment of scheme "exact". */
export function encodeForward({ payment, ...call }: SettleCall): Hex {
  const paid = encodePayment({ ...call, payment: withoutApproval(payment) });
  return `${forwardSelector}${addressWord(payment.asset)}${offset(3 * wordDigits)}${addressWord(call.recipient)}${paid}`;
}

/** Returns true if our calldata settles several payments together: a revert then says nothing about any single one. */
export function settlesSeveral(data: Hex): boolean {
  return data.toLowerCase().startsWith(settleBatchSelector);
}

/** The fields that the payments of a group share, then the offset of the payments, then the payments. */
function encodeGroup(calls: readonly SettleCall[], network: Contract): string {
  const [first] = calls;
  const head = first === undefined ? "" : groupHead(first, network);
  return `${head}${offset(5 * wordDigits)}${encodeArray(calls.map(encodePayment))}`;
}

function groupHead({ payment, recipient }: SettleCall, network: Contract): string {
  const isUpto = payment.method === uptoPermit2;
  return `${addressWord(payment.asset)}${bool(isUpto)}${bool(goesStraight(payment, network))}${addressWord(recipient)}`;
}

const bool = (is: boolean) => uintWord(is ? 1n : 0n);

/** The words of a payment, then its EIP-2612 approval (empty if none is submitted), then its signature. */
function encodePayment(call: SettleCall): string {
  const { from, amount, nonce, deadline, validAfter } = permitOf(call.payment);
  const numbers = [amount, nonce, deadline, validAfter, amountOf(call)].map(uintWord).join("");
  const known = approvalOf(call.payment);
  const approval = byteWords(typeof known === "object" ? `0x${approvalWords(known).join("")}` : "0x");
  const places = `${offset(8 * wordDigits)}${offset(8 * wordDigits + approval.length)}`;
  return `${addressWord(from)}${numbers}${places}${approval}${byteWords(call.payment.signature)}`;
}

/** The proxy's `settle`: anyone can submit a payment of scheme "exact", but only its facilitator one of scheme "upto". */
export function encodeProxySettle(permit: Permit, signature: Hex, amount: bigint): Hex {
  const { token, amount: permitted, nonce, deadline, from, to, facilitator, validAfter } = permit;
  const signed = `${addressWord(token)}${[permitted, nonce, deadline].map(uintWord).join("")}`;
  if (facilitator === undefined) {
    const witness = `${addressWord(to)}${uintWord(validAfter)}`;
    return `${proxySelectors.exact}${signed}${addressWord(from)}${witness}${offset(8 * wordDigits)}${byteWords(signature)}`;
  }
  const witness = `${addressWord(to)}${addressWord(facilitator)}${uintWord(validAfter)}`;
  return `${proxySelectors.upto}${signed}${uintWord(amount)}${addressWord(from)}${witness}${offset(10 * wordDigits)}${byteWords(signature)}`;
}

/** The target and calldata of a transaction. */
export type SentCall = { to: string; input: string };

/**
 * Returns true if a transaction calls the "exact" proxy to settle this very payment. If it succeeded, the money has moved.
 * The signature is not compared because Permit2 has checked it.
 */
export function submitsPayment(call: SentCall, permit: Permit): boolean {
  return submittedWords(call) === `0x${encodeProxySettle(permit, "0x", 0n).slice(10, 10 + 7 * wordDigits)}`;
}

/**
 * The nonce, in the ledger's format, of the payment that a transaction submits to the "exact" proxy; undefined if its terms
 * are not these.
 */
export function submittedNonce(
  call: SentCall,
  { token, amount, from, to }: Pick<Permit, "token" | "amount" | "from" | "to">,
): Hex | undefined {
  const words = submittedWords(call);
  if (words === undefined) return undefined;
  const [isToken, isAmount, nonce, , isPayer, isPayee] = [0, 1, 2, 3, 4, 5].map((place) =>
    wordAt(words, place),
  );
  const isIt =
    isToken === addressWord(token) &&
    isAmount === uintWord(amount) &&
    isPayer === addressWord(from) &&
    isPayee === addressWord(to);
  return isIt ? `0x${nonce}` : undefined;
}

/** The signed fields of a submitted payment: token, amount, nonce, deadline, payer, payee, start. */
function submittedWords({ to, input }: SentCall): Hex | undefined {
  if (to.toLowerCase() !== exactProxyAddress.toLowerCase()) return undefined;
  const data = input.toLowerCase();
  const isWithPermit = data.startsWith(proxySelectors.exactWithPermit);
  if (!isWithPermit && !data.startsWith(proxySelectors.exact)) return undefined;
  const start = 10 + (isWithPermit ? 5 * wordDigits : 0);
  return data.length < start + 7 * wordDigits ? undefined : `0x${data.slice(start, start + 7 * wordDigits)}`;
}

/**
 * The errors of Permit2 and of the x402 proxies, which the facilitator contract passes on. Two of them differ only in
 * their parameters: `InvalidAmount()` comes from the proxies, `InvalidAmount(uint256)` from Permit2.
 */
const signatures = [
  "InvalidNonce()",
  "SignatureExpired(uint256)",
  "InvalidAmount(uint256)",
  "InvalidSigner()",
  "InvalidSignature()",
  "InvalidSignatureLength()",
  "InvalidContractSignature()",
  "Permit2612AmountMismatch()",
  "InvalidOwner()",
  "InvalidDestination()",
  "PaymentTooEarly()",
  "InvalidAmount()",
  "InvalidPermit2Address()",
  "ReentrancyGuardReentrantCall()",
  "AmountExceedsPermitted()",
  "UnauthorizedFacilitator()",
] as const;

type Permit2Error = (typeof signatures)[number];

const bySelector = new Map<string, Permit2Error>(signatures.map((one) => [selector(one), one]));

/** The Permit2 or proxy error behind a revert; otherwise undefined. */
export function permit2ErrorOf(revert: Revert): Permit2Error | undefined {
  if (revert.kind !== "unknown") return undefined;
  const error = bySelector.get(revert.data.slice(0, 10).toLowerCase());
  const parameters = revert.data.length - 10;
  const wanted = error?.includes("uint256") === true ? 64 : 0;
  return parameters === wanted ? error : undefined;
}

/** Formats the name and the argument of such an error for messages. */
export function describePermit2Revert(data: Hex): string {
  const revert = decodeRevert(data);
  const error = permit2ErrorOf(revert);
  if (error === undefined) return describeRevert(revert);
  const [argument] = error.includes("uint256")
    ? (decodeParameters(["uint256"], `0x${data.slice(10)}`) ?? [])
    : [];
  const name = error.slice(0, error.indexOf("("));
  return argument === undefined ? name : `${name} ${argument}`;
}
