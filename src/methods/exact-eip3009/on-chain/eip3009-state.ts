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
 * Diagnoses EIP-3009 payments by state. A payment directly to its payee does not involve the facilitator contract, unless
 * the payer's wallet is deployed with it: that always needs the contract.
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

/**
 * FiatTokenV2_2's revert messages for problems that the state does not show. They are treated as part of the token's
 * interface, and only full matches count.
 */
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

/** The call that reads if a payer's authorization was used or canceled (EIP-3009). */
export function authorizationStateOf(asset: Address, payer: Address, authorizationNonce: Hex): ViewCall {
  const data: Hex = `${authorizationState}${addressWord(payer)}${authorizationNonce.slice(2)}`;
  return { target: asset, data };
}

/** True if the authorization of a payment is used or canceled in the token. */
export function authorizationUse(
  payment: Pick<SignedPayment, "asset" | "payer" | "nonce">,
): WordSource<boolean> {
  return neededFlag(authorizationStateOf(payment.asset, payment.payer, payment.nonce));
}

/** The filter for the token's log that an authorization was used or canceled; there is at most one. */
export function endsOf({ asset, payer, nonce }: Pick<SignedPayment, "asset" | "payer" | "nonce">): LogFilter {
  const topics = [
    [authorizationUsedTopic, authorizationCanceledTopic],
    `0x${addressWord(payer)}`,
    nonce,
  ] as const;
  return { address: asset, topics };
}
