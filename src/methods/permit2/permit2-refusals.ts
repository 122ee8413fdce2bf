import { differs, type Invalid, invalid } from "../../protocol/catalogue.ts";
import type { Address } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { formatBoth, unitsOf } from "../../protocol/token-units.ts";
import {
  type JudgedPayment,
  type StateFacts,
  type StateRefusals,
  usualStateRefusals,
} from "../payment-state.ts";
import { approvalOf, approvalRefusals } from "./approval.ts";
import { permit2Address } from "./permit.ts";

/** A number of the chain, or a placeholder where it is not known beforehand. */
type Shown = bigint | string;

/** The refusals of well-formed payments that only Permit2 has. */
export const permit2Refusals = {
  spenderDiffers: (spender: Address, wanted: Address) =>
    differs(
      "spender_differs",
      {
        at: "permit2Authorization.spender",
        got: spender,
        expected: `${wanted}, the proxy of x402 for the scheme`,
      },
      "Sign again, with that spender",
    ),

  /** `wanted` is undefined where only the chain knows it. */
  facilitatorDiffers: (facilitator: Address, wanted: Address | undefined) => {
    const at = "permit2Authorization.witness.facilitator";
    const advice =
      "Sign again, for the facilitatorAddress in extra of the requirements, which GET /supported gives";
    return wanted === undefined
      ? invalid("facilitator_differs", `${at} is ${facilitator}, which may not submit it`, advice)
      : differs("facilitator_differs", { at, got: facilitator, expected: wanted }, advice);
  },

  assetWithoutCode: (asset: Address, network: string) =>
    invalid("asset_without_code", `There is no contract at the asset ${asset} on ${network}`),

  proxyMissing: (network: string) =>
    invalid("proxy_missing", `Permit2, or the proxy of x402 for it, is not deployed on ${network}`),

  /** `token` is what is known of the asset, by which amounts are shown. */
  allowanceTooSmall: (
    { asset }: Pick<SignedPayment, "asset">,
    token: Asset | undefined,
    { allowance, needed }: { allowance: Shown; needed: bigint },
  ) => {
    const units = token && unitsOf(token);
    return invalid(
      "allowance_too_small",
      `The payer lets Permit2 take ${formatBoth(allowance, units)}; ${formatBoth(needed, units)} is needed`,
      `Let the payer call approve(${permit2Address}, ${needed}) at the token ${asset}, or approve more, then send the same payment again`,
    );
  },

  tokenKeepsAFee: (asset: Address) =>
    invalid(
      "permit_would_revert",
      `The token ${asset} moves another amount than the one that is paid: it keeps a fee of each transfer, and cannot be paid with`,
    ),

  wouldRevert: (why: string) => invalid("permit_would_revert", `Settling would revert on chain: ${why}`),
} as const satisfies Record<string, (...facts: never[]) => Invalid>;

export const permit2StateRefusals: StateRefusals = (facts, one) => [
  facts.assetMissing && permit2Refusals.assetWithoutCode(one.payment.asset, one.network),
  (facts.permit2Missing || facts.proxyMissing) && permit2Refusals.proxyMissing(one.network),
  ...usualStateRefusals(facts, one),
  refuseAllowance(facts, one),
  facts.assetKeepsFee && permit2Refusals.tokenKeepsAFee(one.payment.asset),
];

function refuseAllowance(
  { payerAllowance, nextApproval }: StateFacts,
  { payment, needed, token }: JudgedPayment,
): Invalid | undefined {
  if (payerAllowance === undefined || payerAllowance >= needed) return undefined;
  const approval = approvalOf({ payload: payment.payload ?? null });
  if (typeof approval !== "object") {
    return permit2Refusals.allowanceTooSmall(payment, token, { allowance: payerAllowance, needed });
  }
  // A token that was not asked may take the approval.
  return nextApproval === undefined ? undefined : approvalRefusals.refusedByToken(approval, nextApproval);
}
