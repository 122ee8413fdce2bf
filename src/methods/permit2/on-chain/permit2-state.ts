import { describeRevert, type Revert } from "../../../chain/revert.ts";
import { selector, type ViewCall } from "../../../chain/views.ts";
import { type Invalid, invalid } from "../../../protocol/catalogue.ts";
import { type Address, addressWord, type Hex, sameAddress, uintWord } from "../../../protocol/hex.ts";
import { refusals } from "../../../protocol/refusals.ts";
import type { SignedPayment } from "../../../protocol/signed-payment.ts";
import { allowanceOf, approvalSources } from "../../on-chain/allowance.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
import {
  amount,
  createDiagnosing,
  type Diagnosis,
  type DiagnosisSources,
  orElse,
  tokenSources,
  type WordSource,
  withoutCode,
} from "../../on-chain/state-facts.ts";
import { exactProxyAddress, permit2Address, uptoProxyAddress } from "../permit.ts";
import { permit2Words, permitOf, uptoPermit2 } from "../permit2-payload.ts";
import { permit2Refusals, permit2StateRefusals } from "../permit2-refusals.ts";
import { describePermit2Revert, permit2ErrorOf } from "./permit2-calls.ts";

const selectors = {
  nonceBitmap: selector("nonceBitmap(address,uint256)"),
  permit2: selector("PERMIT2()"),
} as const;

/** The position of a nonce in the payer's bitmap: the index of the word, and a mask for the bit. */
export function bitOf({ nonce }: Pick<SignedPayment, "nonce">): { word: bigint; bit: bigint } {
  const number = BigInt(nonce);
  return { word: number >> 8n, bit: 1n << (number & 255n) };
}

/** The call that reads which Permit2 an x402 proxy uses. */
export function permit2Of(proxy: Address): ViewCall {
  return { target: proxy, data: selectors.permit2 };
}

/** True if the nonce of a payment is used or canceled in Permit2. */
export function nonceUse(payment: Pick<SignedPayment, "payer" | "nonce">): WordSource<boolean> {
  const { word: place, bit } = bitOf(payment);
  const data: Hex = `${selectors.nonceBitmap}${addressWord(payment.payer)}${uintWord(place)}`;
  return {
    view: { target: permit2Address, data },
    read: ({ word }) => (word === undefined ? undefined : (BigInt(word) & bit) !== 0n),
  };
}

/** The payer's Permit2 allowance. */
export const allowanceSource = (payment: Pick<SignedPayment, "asset" | "payer">): WordSource<bigint> =>
  amount(allowanceOf(payment));

/** Defaults stand in for contracts that do not answer, so that a missing token or Permit2 is reported as missing. */
function sourcesOf(payment: SignedPayment): DiagnosisSources {
  const { asset, payer, method } = payment;
  const proxy = permit2Of(method === uptoPermit2 ? uptoProxyAddress : exactProxyAddress);
  const { payerBalance, ...token } = tokenSources(payment);
  return {
    assetMissing: withoutCode(asset),
    permit2Missing: withoutCode(permit2Address),
    proxyMissing: {
      view: proxy,
      read: ({ word }) => word === undefined || !sameAddress(`0x${word.slice(26)}`, permit2Address),
    },
    payerHasCode: { ...withoutCode(payer), read: ({ codeHash }) => codeHash !== null },
    authorizationUsed: orElse(nonceUse(payment), false),
    payerBalance: orElse(payerBalance, 0n),
    ...approvalSources(payment),
    ...token,
  };
}

/** Diagnoses reverts by state, because Permit2 reverts the same way whatever the token's reason was. */
export const { stateOf, explain, explainFirst } = createDiagnosing({
  stateRefusals: permit2StateRefusals,
  sourcesOf,
  needsContract: () => true,
  factsOf: (revert) => ({ assetKeepsFee: revert.kind === "custom" && revert.name === "UnexpectedBalance" }),
  explainRevert,
});

function explainRevert(revert: Revert, { payment }: SettleCall, { payerHasCode }: Diagnosis): Invalid {
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
      // If the state shows no other reason, the payer's wallet has most likely reverted without data.
      if (payerHasCode && revert.kind === "custom" && revert.name === "TokenCallFailed")
        return refusals.tokenRefusesSignature(payment.payer, permit2Words);
      return permit2Refusals.wouldRevert(
        revert.kind === "unknown" ? describePermit2Revert(revert.data) : describeRevert(revert),
      );
  }
}
