import type { Chain, ChainQueries } from "../../../chain/chain.ts";
import { askViews, expectWord } from "../../../chain/chain-reader.ts";
import { describeRevert, type Revert } from "../../../chain/revert.ts";
import {
  balanceOf,
  codeOf,
  hasOperatorRole,
  isBlacklisted,
  isPaused,
  isTrue,
  selector,
  type ViewCall,
  viewGas,
} from "../../../chain/views.ts";
import { type Invalid, invalid } from "../../../protocol/catalogue.ts";
import { type Address, addressWord, type Hex, sameAddress, uintWord } from "../../../protocol/hex.ts";
import { findAsset } from "../../../protocol/networks.ts";
import { refusals } from "../../../protocol/refusals.ts";
import { goesStraight, type SignedPayment } from "../../../protocol/signed-payment.ts";
import { maxUint256 } from "../../../protocol/wire-values.ts";
import {
  amountOf,
  findObstacle,
  type PaymentState,
  requireOperable,
  requireSimulated,
  type SettleCall,
} from "../../on-chain/settling.ts";
import type { UseView } from "../../on-chain/use-reader.ts";
import { approvalOf, approvalRefusals } from "../approval.ts";
import { transactionRefusals } from "../approval-transaction.ts";
import { exactProxyAddress, permit2Address, uptoProxyAddress } from "../permit.ts";
import { permit2Words, permitOf, uptoPermit2 } from "../permit2-payload.ts";
import { permit2Refusals } from "../permit2-refusals.ts";
import { describePermit2Revert, permit2ErrorOf } from "./permit2-calls.ts";

const selectors = {
  nonceBitmap: selector("nonceBitmap(address,uint256)"),
  allowance: selector("allowance(address,address)"),
  permit2: selector("PERMIT2()"),
  nonces: selector("nonces(address)"),
} as const;

/** A payment as Permit2 knows it. */
type KnownPayment = Pick<SignedPayment, "payer" | "nonce">;

/** Where in the payer's bitmap a nonce is: the word, and its bit in it. */
export function bitOf({ nonce }: Pick<SignedPayment, "nonce">): { word: bigint; bit: bigint } {
  const number = BigInt(nonce);
  return { word: number >> 8n, bit: 1n << (number & 255n) };
}

/** The word of Permit2's bitmap in which the nonce of a payment has its bit. */
export function nonceBitmapOf(payment: KnownPayment): ViewCall {
  const { word } = bitOf(payment);
  return {
    target: permit2Address,
    data: `${selectors.nonceBitmap}${addressWord(payment.payer)}${uintWord(word)}`,
  };
}

/** Whether the bit of a nonce is set in its word: it was used, or cancelled. */
export function isBitSet(payment: Pick<SignedPayment, "nonce">, word: Hex): boolean {
  return (BigInt(word) & bitOf(payment).bit) !== 0n;
}

/** How much Permit2 may take of the payer's tokens. */
export function allowanceOf({ asset, payer }: Pick<SignedPayment, "asset" | "payer">): ViewCall {
  return {
    target: asset,
    data: `${selectors.allowance}${addressWord(payer)}${addressWord(permit2Address)}`,
  };
}

/** The payer's next nonce at the token for an approval by EIP-2612. */
export function nextApprovalOf({ asset, payer }: Pick<SignedPayment, "asset" | "payer">): ViewCall {
  return { target: asset, data: `${selectors.nonces}${addressWord(payer)}` };
}

/** Which Permit2 a proxy of x402 uses. */
export function permit2Of(proxy: Address): ViewCall {
  return { target: proxy, data: selectors.permit2 };
}

/** Whether Permit2 has the nonce of a payment as used or cancelled. */
export const nonceUse: UseView = { viewOf: nonceBitmapOf, isUsed: isBitSet };

/** The state that can keep a correctly signed payment from settling. */
type Diagnosis = {
  assetHasCode: boolean;
  proxyIsThere: boolean;
  payerHasCode: boolean;
  used: boolean;
  balance: bigint;
  allowance: bigint;
  /** The payer's next nonce of EIP-2612; 0 of a token that has none. */
  nextApproval: bigint;
  tokenPaused: boolean;
  payerBlacklisted: boolean;
  recipientBlacklisted: boolean;
  contractBlacklisted: boolean;
  contractPaused: boolean;
  operatorAuthorized: boolean;
};

/** Reads whatever may explain a failed simulation. */
async function diagnose(
  { reader, operator, network: { facilitatorContract } }: ChainQueries,
  { payment, recipient, id }: SettleCall,
): Promise<Diagnosis> {
  const { asset, payer } = payment;
  const proxy = payment.method === uptoPermit2 ? uptoProxyAddress : exactProxyAddress;
  const [
    code,
    payerCode,
    permit2Code,
    permit2,
    bitmap,
    balance,
    allowance,
    nextApproval,
    paused,
    payerBlacklisted,
    recipientBlacklisted,
    contractBlacklisted,
    contractPaused,
    operatorAuthorized,
  ] = await askViews(
    reader,
    [
      codeOf(asset),
      codeOf(payer),
      codeOf(permit2Address),
      permit2Of(proxy),
      nonceBitmapOf(payment),
      balanceOf(asset, payer),
      allowanceOf(payment),
      nextApprovalOf(payment),
      isPaused(asset),
      isBlacklisted(asset, payer),
      isBlacklisted(asset, recipient),
      isBlacklisted(asset, facilitatorContract),
      isPaused(facilitatorContract),
      hasOperatorRole(facilitatorContract, operator),
    ],
    viewGas,
    id,
  );
  const amount = (word: Hex | undefined) => (word === undefined ? 0n : BigInt(word));
  return {
    assetHasCode: code?.codeHash != null,
    payerHasCode: payerCode?.codeHash != null,
    proxyIsThere:
      permit2Code?.codeHash != null &&
      permit2?.word !== undefined &&
      sameAddress(`0x${permit2.word.slice(26)}`, permit2Address),
    used: bitmap?.word !== undefined && isBitSet(payment, bitmap.word),
    balance: amount(balance?.word),
    allowance: amount(allowance?.word),
    nextApproval: amount(nextApproval?.word),
    tokenPaused: isTrue(paused?.word),
    payerBlacklisted: isTrue(payerBlacklisted?.word),
    recipientBlacklisted: isTrue(recipientBlacklisted?.word),
    contractBlacklisted: isTrue(contractBlacklisted?.word),
    contractPaused: isTrue(expectWord(reader, "paused of the facilitator contract", contractPaused)),
    operatorAuthorized: isTrue(expectWord(reader, "hasRole of the facilitator contract", operatorAuthorized)),
  };
}

/** {@link Settling.stateOf} */
export async function stateOf(chain: ChainQueries, call: SettleCall): Promise<PaymentState> {
  const state = await diagnose(chain, call);
  // What goes straight to its payee has nothing in its way once it is used.
  if (goesStraight(call.payment, chain.network)) return { used: state.used };
  return { used: state.used, obstacle: findObstacle(state) };
}

/**
 * Why a correctly signed payment would not settle, after its simulation reverted. Reads the state that may explain it, since
 * Permit2 says the same whatever the token refused, and falls back on the words of the revert.
 *
 * @throws UndeterminedError when the fault is ours: the contract paused. OperatorError when it is the operator's: without
 * its role.
 */
export async function explainRevert(chain: Chain, call: SettleCall, revert: Revert): Promise<Invalid> {
  requireSimulated(revert, chain.network);
  const state = await diagnose(chain, call);
  requireOperable(state, chain.network);
  return explainByState(state, call, chain) ?? explainByRevert(revert, call, state);
}

/** {@link Settling.explainBefore}: of an approval that is a transaction of the payer's. */
export async function explainBefore(
  chain: Chain,
  call: SettleCall,
  outcome: Revert | "unknown",
): Promise<Invalid | undefined> {
  const state = await diagnose(chain, call);
  requireOperable(state, chain.network);
  const byState = explainByState({ ...state, allowance: maxUint256 }, call, chain);
  if (byState !== undefined || outcome === "unknown") return byState;
  return transactionRefusals.refusedByToken(describeRevert(outcome));
}

function explainByState(
  state: Diagnosis,
  { payment, recipient, ...call }: SettleCall,
  { network }: Chain,
): Invalid | undefined {
  if (!state.assetHasCode) return permit2Refusals.assetWithoutCode(payment.asset, network.name);
  if (!state.proxyIsThere) return permit2Refusals.proxyMissing(network.name);
  if (state.used) return refusals.usedOnChain();
  if (state.tokenPaused) return refusals.assetPaused();
  if (state.payerBlacklisted) return refusals.payerBlacklisted();
  if (state.recipientBlacklisted) return refusals.recipientBlacklisted(recipient);
  if (state.contractBlacklisted && !goesStraight(payment, network)) return refusals.contractBlacklisted();
  const needed = amountOf({ payment, ...call });
  const asset = findAsset(network.assets, payment.asset);
  if (state.balance < needed) return refusals.balanceTooSmall(state.balance, needed, asset);
  if (state.allowance >= needed) return undefined;
  const approval = approvalOf(payment);
  if (typeof approval === "object") return approvalRefusals.refusedByToken(approval, state.nextApproval);
  return permit2Refusals.allowanceTooSmall(payment, asset, { allowance: state.allowance, needed });
}

function explainByRevert(
  revert: Revert,
  { payment }: SettleCall,
  { payerHasCode }: Pick<Diagnosis, "payerHasCode">,
): Invalid {
  const error = permit2ErrorOf(revert);
  switch (error) {
    case "InvalidSigner()":
    case "InvalidSignature()":
    case "InvalidSignatureLength()":
    case "InvalidContractSignature()":
      return refusals.tokenRefusesSignature(payment.payer, permit2Words);
    case "SignatureExpired(uint256)":
      return invalid("expired", "The authorization is outside of its time window on chain");
    case "PaymentTooEarly()":
      return invalid("never_valid", "The authorization is outside of its time window on chain");
    case "UnauthorizedFacilitator()":
      return permit2Refusals.facilitatorDiffers(permitOf(payment).facilitator ?? permit2Address, undefined);
    default:
      if (revert.kind === "custom" && revert.name === "UnexpectedBalance")
        return permit2Refusals.tokenKeepsAFee(payment.asset);
      // A wallet that reverts without a word is the payer's, as far as state tells.
      if (payerHasCode && revert.kind === "custom" && revert.name === "TokenCallFailed")
        return refusals.tokenRefusesSignature(payment.payer, permit2Words);
      return permit2Refusals.wouldRevert(
        revert.kind === "unknown" ? describePermit2Revert(revert.data) : describeRevert(revert),
      );
  }
}
