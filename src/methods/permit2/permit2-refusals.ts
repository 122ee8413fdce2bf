import { differs, type Invalid, invalid } from "../../protocol/catalogue.ts";
import type { Address } from "../../protocol/hex.ts";
import { refuseAllowance } from "../approval.ts";
import { type StateRefusals, usualStateRefusals } from "../payment-state.ts";

/** The refusals of well-formed payments that are specific to Permit2. */
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

  /** `wanted` is undefined if only the chain knows it. */
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
