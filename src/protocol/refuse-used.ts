import { nextStepOfRefusal } from "./next-step.ts";
import { type Invalid, limitMessage } from "./reasons.ts";
import { refusals } from "./refusals.ts";
import type { settlementStates } from "./settlement-states.ts";
import type { Situation } from "./situations.ts";

/**
 * Whether a payer who follows a refusal signs a new authorization, and so may pay a second time: unless it says that the earlier
 * request has failed for good.
 */
export function isSignedAgain(refusal: Invalid): boolean {
  const { nextAction } = nextStepOfRefusal(refusal, undefined);
  return nextAction === "sign_again" && refusal.situation !== "failed_for_good";
}

/**
 * A refusal of an authorization that an earlier request has used, or is about to: the same payment with other requirements,
 * or a damaged one. Where payers would sign again for it, what follows from it is the situation of the earlier request; its
 * reason stays.
 */
export function refuseUsed(refusal: Invalid, situation: Situation): Invalid {
  return withoutSigning(refusal, situation, "An earlier request used this authorization");
}

/**
 * A refusal of an authorization that was used or cancelled on chain, and which the ledger does not know: the payment was
 * submitted straight to the token, or the ledger that knew it is gone. One that has expired was used in time.
 */
export function refuseUsedOnChain(refusal: Invalid): Invalid {
  if (refusal.reason === "invalid_exact_evm_payload_authorization_valid_before")
    return refusals.usedOnChain();
  return withoutSigning(refusal, "used_on_chain", "This authorization was used or cancelled on chain");
}

/** A refusal of an authorization of which it cannot be told whether it was used. */
export function refuseUntold(refusal: Invalid): Invalid {
  return withoutSigning(refusal, "use_unknown", "The chain could not be asked whether it was used");
}

function withoutSigning(refusal: Invalid, situation: Situation, why: string): Invalid {
  if (!isSignedAgain(refusal)) return refusal;
  const [fact = ""] = refusal.message.split(/\.(?: |$)/, 1);
  const message = `${fact}. ${why}: sign no other before you know what became of it.`;
  return { ...refusal, message: limitMessage(message), situation };
}

/** How a settlement stands to those who send its payment again. `deliveredAt` is null until its success was handed over. */
export function situationOfUse(
  state: (typeof settlementStates)[number],
  deliveredAt: unknown,
  isOwn: boolean,
): Situation {
  if (!isOwn) return "used_here";
  if (state === "failed") return "transaction_failed";
  return deliveredAt === null || state === "submitted" ? "pending" : "settled_before";
}
