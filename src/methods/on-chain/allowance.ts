import { selector, type ViewCall } from "../../chain/views.ts";
import { addressWord } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { permit2Address } from "../permit2-domain.ts";
import { amount, orElse } from "./state-facts.ts";

const selectors = {
  allowance: selector("allowance(address,address)"),
  nonces: selector("nonces(address)"),
} as const;

type Payer = Pick<SignedPayment, "asset" | "payer">;

/** The call that reads the payer's Permit2 allowance. */
export function allowanceOf({ asset, payer }: Payer): ViewCall {
  return {
    target: asset,
    data: `${selectors.allowance}${addressWord(payer)}${addressWord(permit2Address)}`,
  };
}

/** The call that reads the payer's next EIP-2612 nonce at the token. */
export function nextApprovalOf({ asset, payer }: Payer): ViewCall {
  return { target: asset, data: `${selectors.nonces}${addressWord(payer)}` };
}

/** Both as sources for a diagnosis; 0 if the token does not answer. */
export function approvalSources(payer: Payer) {
  return {
    payerAllowance: orElse(amount(allowanceOf(payer)), 0n),
    nextApproval: orElse(amount(nextApprovalOf(payer)), 0n),
  };
}
