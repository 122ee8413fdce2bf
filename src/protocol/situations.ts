/** What a program that gets the answer should do. */
export const nextActions = {
  fix_request:
    "Change the request as the message says, and send it again. The payer need not sign again for that alone.",
  sign_again:
    "Let the payer sign a new authorization: this one cannot be settled, and was not used on chain when it was refused.",
  retry_same_payment:
    "Send the same bytes again, after `retryAfterSeconds` where it is there. Never sign again: this payment may have been taken.",
  poll: "Ask for the settlement at `poll` every `retryAfterSeconds`, or send the same payment again. Never sign again meanwhile.",
  wait: "Send the same payment again after `retryAfterSeconds`: what stands in its way goes away by itself.",
  give_up: "Do not pay again: the payment was made, or nothing that the caller does will make it.",
  ask_operator:
    "Ask those who run the facilitator. Do not sign again until they have said what became of the payment.",
} as const;

/** What is known of the payer's money. */
export const paymentStates = {
  not_taken: "Nothing was taken by this request.",
  in_flight: "A transaction is on its way, or is about to be.",
  taken: "The payment was settled.",
  unknown: "It is not known, or was not looked at.",
} as const;

/** What follows from a situation. */
export type Step = {
  nextAction: keyof typeof nextActions;
  paymentState: keyof typeof paymentStates;
  /** Where nothing more exact is known. */
  retryAfterSeconds?: number;
  /** Whether the settlement can be asked for. */
  poll?: true;
};

/** Every situation in which an answer is not a success, and what follows from it: the whole table. What each means is in `situation-meanings.ts`. */
export const situations = {
  request_wrong: {
    nextAction: "fix_request",
    paymentState: "not_taken",
  },
  authorization_wrong: {
    nextAction: "sign_again",
    paymentState: "not_taken",
  },
  not_valid_yet: {
    nextAction: "wait",
    paymentState: "not_taken",
  },
  payer_cannot_pay: {
    nextAction: "give_up",
    paymentState: "not_taken",
  },
  payer_has_code: {
    nextAction: "sign_again",
    paymentState: "not_taken",
  },
  wallet_not_deployed: {
    nextAction: "sign_again",
    paymentState: "not_taken",
  },
  balance_taken_up: {
    nextAction: "wait",
    paymentState: "not_taken",
    retryAfterSeconds: 2,
  },
  asset_paused: {
    nextAction: "wait",
    paymentState: "not_taken",
    retryAfterSeconds: 60,
  },
  contract_blacklisted: {
    nextAction: "ask_operator",
    paymentState: "not_taken",
  },
  under_way: {
    nextAction: "wait",
    paymentState: "in_flight",
    retryAfterSeconds: 2,
  },
  pending: {
    nextAction: "poll",
    paymentState: "in_flight",
    retryAfterSeconds: 2,
    poll: true,
  },
  settled_before: {
    nextAction: "give_up",
    paymentState: "taken",
  },
  used_here: {
    nextAction: "give_up",
    paymentState: "unknown",
  },
  used_on_chain: {
    nextAction: "ask_operator",
    paymentState: "unknown",
  },
  use_unknown: {
    nextAction: "retry_same_payment",
    paymentState: "unknown",
    retryAfterSeconds: 2,
  },
  transaction_failed: {
    nextAction: "poll",
    paymentState: "unknown",
    retryAfterSeconds: 60,
    poll: true,
  },
  failed_for_good: {
    nextAction: "sign_again",
    paymentState: "not_taken",
  },
  request_refused: {
    nextAction: "fix_request",
    paymentState: "unknown",
  },
  identifier_reused: {
    nextAction: "give_up",
    paymentState: "unknown",
  },
  verify_refused: {
    nextAction: "fix_request",
    paymentState: "not_taken",
  },
  verify_not_allowed: {
    nextAction: "ask_operator",
    paymentState: "not_taken",
  },
  not_allowed: {
    nextAction: "ask_operator",
    paymentState: "unknown",
  },
  no_verdict: {
    nextAction: "retry_same_payment",
    paymentState: "unknown",
    retryAfterSeconds: 1,
  },
} as const satisfies Record<string, Step>;

export type Situation = keyof typeof situations;
