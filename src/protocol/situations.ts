/** What a program that gets the answer should do. */
export const nextActions = {
  fix_request:
    "Change the request as the message says, and send it again. The payer need not sign again for that alone.",
  sign_again:
    "Let the payer sign a new authorization: this one cannot be settled, and never was by this facilitator.",
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
  means: string;
};

/** Every situation in which an answer is not a success, and what follows from it: the whole table. */
export const situations = {
  request_wrong: {
    nextAction: "fix_request",
    paymentState: "not_taken",
    means: "The payment or the requirements are malformed, or ask for what is not settled here",
  },
  authorization_wrong: {
    nextAction: "sign_again",
    paymentState: "not_taken",
    means: "The authorization is not what is needed: value, times or signature",
  },
  not_valid_yet: {
    nextAction: "wait",
    paymentState: "not_taken",
    means: "`validAfter` has not passed yet",
  },
  payer_cannot_pay: {
    nextAction: "give_up",
    paymentState: "not_taken",
    means: "The payer has too little, is blacklisted, or is a wallet that does not agree",
  },
  wallet_not_deployed: {
    nextAction: "sign_again",
    paymentState: "not_taken",
    means: "The payer is a smart wallet that is not deployed: once it is, it signs again",
  },
  balance_taken_up: {
    nextAction: "wait",
    paymentState: "not_taken",
    retryAfterSeconds: 2,
    means: "Other settlements under way use up the payer's balance",
  },
  asset_paused: {
    nextAction: "wait",
    paymentState: "not_taken",
    retryAfterSeconds: 60,
    means: "The token is paused by its issuer",
  },
  contract_blacklisted: {
    nextAction: "ask_operator",
    paymentState: "not_taken",
    means: "The facilitator contract, or the organization's wallet, is blacklisted",
  },
  under_way: {
    nextAction: "wait",
    paymentState: "in_flight",
    retryAfterSeconds: 2,
    means: "Another request is settling this payment",
  },
  pending: {
    nextAction: "poll",
    paymentState: "in_flight",
    retryAfterSeconds: 2,
    poll: true,
    means: "The transaction is sent, and not decided in time (503)",
  },
  settled_before: {
    nextAction: "give_up",
    paymentState: "taken",
    means: "The payment was settled before, and its success was handed over",
  },
  used_here: {
    nextAction: "give_up",
    paymentState: "unknown",
    means: "The authorization was used here before; the caller may not be the one whose payment it was",
  },
  used_on_chain: {
    nextAction: "ask_operator",
    paymentState: "unknown",
    means: "The authorization was used or cancelled by another party: the token does not tell the two apart",
  },
  transaction_failed: {
    nextAction: "poll",
    paymentState: "unknown",
    retryAfterSeconds: 60,
    poll: true,
    means:
      "The transaction was reverted. Until `validBefore` has passed the payment may still be made by others and recovered: only a settlement that is `failed` after that leaves the payer free to sign again",
  },
  request_refused: {
    nextAction: "fix_request",
    paymentState: "unknown",
    means:
      "A settle was not looked at (4xx): the key, the body or the headers are wrong. This request took nothing; an earlier one with the same payment may have",
  },
  identifier_reused: {
    nextAction: "give_up",
    paymentState: "unknown",
    means:
      "The payment's identifier was another payment's (409), which may have been taken: what it names is not to be paid a second time",
  },
  verify_refused: {
    nextAction: "fix_request",
    paymentState: "not_taken",
    means:
      "A verify was not looked at (4xx): the key, the body or the headers are wrong. A verify takes nothing",
  },
  verify_not_allowed: {
    nextAction: "ask_operator",
    paymentState: "not_taken",
    means: "A verify was not looked at (403): the organization lacks a recipient, or the key a scope",
  },
  not_allowed: {
    nextAction: "ask_operator",
    paymentState: "unknown",
    means:
      "A settle was not looked at (403): the organization lacks a recipient, or the key a scope. An earlier one with the same payment may have taken it",
  },
  no_verdict: {
    nextAction: "retry_same_payment",
    paymentState: "unknown",
    retryAfterSeconds: 1,
    means: "There is no verdict (408, 429, 5xx)",
  },
} as const satisfies Record<string, Step>;

export type Situation = keyof typeof situations;
