import type { LogFilter } from "../../../chain/logs-and-receipts.ts";
import { describeRevert, type Revert } from "../../../chain/revert.ts";
import { selector, type ViewCall } from "../../../chain/views.ts";
import { type Invalid, invalid, type RefusedSituation } from "../../../protocol/catalogue.ts";
import { type Address, addressWord, type Hex } from "../../../protocol/hex.ts";
import { refusals } from "../../../protocol/refusals.ts";
import {
  goesStraight,
  isErc6492,
  type SignedPayment,
  unwrapErc6492,
} from "../../../protocol/signed-payment.ts";
import { authorizationCanceledTopic, authorizationUsedTopic } from "../../on-chain/events.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
import { createDiagnosing, neededFlag, tokenSources, type WordSource } from "../../on-chain/state-facts.ts";
import { eip3009StateRefusals, eip3009Words } from "../eip3009-method.ts";

/**
 * Where the token alone settles, the facilitator contract has no part in it. A wallet that is deployed with its payment needs the
 * contract on either route.
 */
export const { diagnose, stateOf, explain } = createDiagnosing({
  stateRefusals: eip3009StateRefusals,
  sourcesOf: (payment) => ({ authorizationUsed: authorizationUse(payment), ...tokenSources(payment) }),
  needsContract: (payment, network) => !goesStraight(payment, network) || isErc6492(payment.signature),
  factsOf(revert, { signature }) {
    const isMissing = revert.kind === "custom" && revert.name === "WalletNotDeployed";
    return isMissing ? { failingFactory: unwrapErc6492(signature)?.factory } : {};
  },
  explainRevert,
});

/** FiatTokenV2_2's own words where state alone cannot tell; compared whole, as part of the token's interface. */
const tokenWords: ReadonlyMap<string, RefusedSituation> = new Map([
  ["FiatTokenV2: authorization is not yet valid", "never_valid"],
  ["FiatTokenV2: authorization is expired", "expired"],
  ["FiatTokenV2: invalid signature", "token_refuses_signature"],
  ["ECRecover: invalid signature", "token_refuses_signature"],
  ["ECRecover: invalid signature length", "token_refuses_signature"],
  ["ECRecover: invalid signature 's' value", "token_refuses_signature"],
  ["ECRecover: invalid signature 'v' value", "token_refuses_signature"],
]);

function explainRevert(revert: Revert, { payment }: SettleCall): Invalid {
  const situation = revert.kind === "error" ? tokenWords.get(revert.message) : undefined;
  switch (situation) {
    case "token_refuses_signature":
      return refusals.tokenRefusesSignature(payment.payer, eip3009Words);
    case undefined:
      return invalid("would_revert", `Settling would revert on chain: ${describeRevert(revert)}`);
    default:
      return invalid(situation, "The authorization is outside of its time window on chain");
  }
}

const authorizationState = selector("authorizationState(address,bytes32)");

/** The call that reads whether a payer's authorization was used or cancelled (EIP-3009). */
export function authorizationStateOf(asset: Address, payer: Address, authorizationNonce: Hex): ViewCall {
  const data: Hex = `${authorizationState}${addressWord(payer)}${authorizationNonce.slice(2)}`;
  return { target: asset, data };
}

/** Returns true if the token has the authorization of a payment as used or cancelled. */
export function authorizationUse(
  payment: Pick<SignedPayment, "asset" | "payer" | "nonce">,
): WordSource<boolean> {
  return neededFlag(authorizationStateOf(payment.asset, payment.payer, payment.nonce));
}

/** The logs by which the token says that the authorization was used or cancelled: it has one of them, once. */
export function endsOf({ asset, payer, nonce }: Pick<SignedPayment, "asset" | "payer" | "nonce">): LogFilter {
  const topics = [
    [authorizationUsedTopic, authorizationCanceledTopic],
    `0x${addressWord(payer)}`,
    nonce,
  ] as const;
  return { address: asset, topics };
}
