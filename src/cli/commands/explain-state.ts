import type { PayerState } from "../../methods/exact-eip3009/on-chain/state.ts";
import { explanationOfReason, type RefusalExplanation } from "../../observe/explain/explanations.ts";
import type { NamedPayment } from "../../observe/explain/read-input.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import type { Address } from "../../protocol/hex.ts";
import { knownToken } from "../../protocol/known-token.ts";
import { refusals } from "../../protocol/refusals.ts";
import { formatAmount, type TokenUnits, unitsOf } from "../../protocol/token-units.ts";

/** What stands in the way of a payment by the state of its chain, in the words of the refusals that it would lead to. */
export function explainState(
  { balance, payerBlacklisted, tokenPaused, used }: PayerState,
  { network, value }: NamedPayment,
  asset: Address,
): RefusalExplanation[] {
  const token = knownToken(network, asset);
  const of = (at: string, refusal: Invalid) => explanationOfReason(refusal, at);
  return [
    ...(used ? [of("authorization.nonce", refusals.usedOnChain())] : []),
    ...(tokenPaused ? [of("", refusals.assetPaused())] : []),
    ...(payerBlacklisted ? [of("authorization.from", refusals.payerBlacklisted())] : []),
    ...(value !== undefined && balance < value
      ? [of("authorization.value", refusals.balanceTooSmall(balance, value, token))]
      : []),
  ];
}

/** The state of a chain as the end of a sentence about a payment. */
export function describeState(
  { balance, used: isUsed }: PayerState,
  { network }: NamedPayment,
  { asset, units }: { asset: Address; units: TokenUnits | null },
): string {
  const token = knownToken(network, asset);
  const held = formatAmount(balance, units ?? (token === undefined ? null : unitsOf(token)));
  const used = isUsed ? "was used or cancelled in a block older than those that were searched" : "is unused";
  return `its authorization ${used} on ${network.name}, where its payer holds ${held}`;
}
