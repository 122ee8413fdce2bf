import { settlementPath } from "./routes.ts";

/*
 * The catalogue of refusals: every situation in which a response is not a success, with its reason in each protocol
 * version and what a client should do. The service, the fixtures, `explain`, the OpenAPI document and docs/errors.md
 * read it. Its sentences are in `catalogue-texts.ts`, which web pages with the fixtures do not need.
 */

/** The five settle error codes of the v1 service. */
export const settleErrorReasonsV1 = [
  "invalid_payload",
  "invalid_payment_requirements",
  "insufficient_funds",
  "unexpected_settle_error",
  "invalid_transaction_state",
] as const;

export type SettleErrorReasonV1 = (typeof settleErrorReasonsV1)[number];

/** The next step for a program that gets the response. */
export const nextActions = {
  fix_request:
    "Change the request as the message says, and send it again. The payer need not sign again for that alone.",
  sign_again:
    "Let the payer sign a new authorization: this one cannot be settled, and was not used on chain when it was refused.",
  retry_same_payment:
    "Send the same bytes again, after `retryAfterSeconds` where it is there. Never sign again: this payment may have been taken.",
  approve:
    "Let the payer approve what the message names, then send the same payment again. The payer need not sign again.",
  poll: "Ask for the settlement at `poll` every `retryAfterSeconds`, or send the same payment again. Never sign again meanwhile.",
  wait: "Send the same payment again after `retryAfterSeconds`: what stands in its way goes away by itself.",
  give_up: "Do not pay again: the payment was made, or nothing that the caller does will make it.",
  ask_operator:
    "Ask those who run the facilitator. Do not sign again until they have said what became of the payment.",
} as const;

/** The state of the payer's money, as far as known. */
export const paymentStates = {
  not_taken: "Nothing was taken by this request.",
  in_flight: "A transaction is on its way, or is about to be.",
  taken: "The payment was settled.",
  unknown: "It is not known, or was not looked at.",
} as const;

/** The naming schemes for reasons: the specification's, or that of the public reference facilitator. */
export const dialects = ["spec", "reference"] as const;

export type Dialect = (typeof dialects)[number];

/** The reasons that only the public reference facilitator gives; see `reference-reasons.ts`. */
export const referenceReasons = [
  "invalid_exact_evm_network_mismatch",
  "invalid_exact_evm_missing_eip712_domain",
  "invalid_exact_evm_signature",
  "invalid_exact_evm_recipient_mismatch",
  "invalid_exact_evm_authorization_value",
  "eip6492_factory_not_allowed",
  "invalid_exact_evm_insufficient_balance",
  "invalid_exact_evm_nonce_already_used",
  "invalid_exact_evm_transaction_simulation_failed",
  "invalid_exact_evm_transaction_failed",
  "invalid_upto_evm_transaction_failed",
] as const;

export type ReferenceReason = (typeof referenceReasons)[number];

/** The basis of a refusal, in the order in which verify checks it. */
export type DecidedBy = "form" | "terms" | "signature" | "code" | "time" | "state" | "ledger";

/** The consequences of a situation: a row of the catalogue. */
export type Step = {
  nextAction: keyof typeof nextActions;
  paymentState: keyof typeof paymentStates;
  /** The default if nothing more exact is known. */
  retryAfterSeconds?: number;
  /** True if the settlement can be polled. */
  poll?: true;
  /** The code of a v1 settle, if it differs from the reason's. */
  settleV1?: SettleErrorReasonV1;
};

/** The consequences if nothing was taken. */
const notTaken = <const Action extends keyof typeof nextActions>(nextAction: Action) =>
  ({ nextAction, paymentState: "not_taken" }) as const;

const fixRequest = notTaken("fix_request");
const signAgain = notTaken("sign_again");
const giveUp = notTaken("give_up");
const askOperator = notTaken("ask_operator");
const wait = notTaken("wait");
const approve = notTaken("approve");
const unknown = { paymentState: "unknown" } as const;

/** A row: the consequences of a situation, and what decided it. */
type Row = Step & { decidedBy: DecidedBy };

/** Creates rows for situations with the same decider. */
const by =
  (decidedBy: DecidedBy) =>
  <const S extends Step>(step: S) => ({ ...step, decidedBy });

/** The request cannot be read. */
const form = by("form");
/** The payment, the requirements and the operator's settings do not match. */
const terms = by("terms");
/** The signature is wrong, or cannot be checked. */
const signature = by("signature");
/** The code at the payer's address, which need not check a key's signature. */
const code = by("code");
/** The chain's clock. */
const time = by("time");
/** The chain's state: balances, approvals, the token. */
const state = by("state");
/** The facilitator's own records: earlier requests, and the limits of its organizations. */
const ledger = by("ledger");

/** A reason: the code of a v1 settle, and its situations. */
function of<const Code extends SettleErrorReasonV1, const Rows extends Readonly<Record<string, Row>>>(
  settleV1: Code,
  situations: Rows,
) {
  return { settleV1, situations };
}

/**
 * Why a payment is not valid: the closed set of `invalidReason`, taken from the public x402 v1 list. Version 2 reports the
 * reason itself, a v1 settle its code. Each reason lists its situations; the first one is the default if nothing more is
 * known. `unexpected_verify_error` is not among the reasons: it means that no decision was made, and only comes with a 503.
 */
export const reasons = {
  invalid_payload: of("invalid_payload", { payload_malformed: form(fixRequest) }),
  invalid_x402_version: of("invalid_payload", { version_unknown: form(fixRequest) }),
  unsupported_scheme: of("invalid_payload", {
    scheme_of_payload: form(fixRequest),
    scheme_of_requirements: form({ ...fixRequest, settleV1: "invalid_payment_requirements" }),
  }),
  invalid_network: of("invalid_payment_requirements", {
    network_of_requirements: form(fixRequest),
    network_of_payload: form({ ...fixRequest, settleV1: "invalid_payload" }),
    network_not_enabled: terms(fixRequest),
    networks_differ: terms(fixRequest),
  }),
  invalid_payment_requirements: of("invalid_payment_requirements", {
    requirements_malformed: form(fixRequest),
    asset_not_accepted: terms(fixRequest),
    pay_to_not_accepted: terms(fixRequest),
    amount_below_minimum: ledger(fixRequest),
    amount_zero: terms(fixRequest),
    asset_paid_otherwise: terms(signAgain),
  }),
  invalid_exact_evm_payload_recipient_mismatch: of("invalid_payload", {
    recipient_differs: terms(signAgain),
  }),
  invalid_exact_evm_payload_authorization_value: of("invalid_payload", { value_differs: terms(signAgain) }),
  // Version 2's name for the reason above; see `reasonsOfV2`.
  invalid_exact_evm_payload_authorization_value_mismatch: of("invalid_payload", {}),
  invalid_exact_evm_payload_authorization_valid_after: of("invalid_payload", {
    never_valid: time(signAgain),
    not_valid_yet: time(wait),
  }),
  invalid_exact_evm_payload_authorization_valid_before: of("invalid_payload", {
    expired: time(signAgain),
    valid_too_long: time(signAgain),
  }),
  invalid_exact_evm_payload_signature: of("invalid_payload", {
    signature_wrong: signature(signAgain),
    wallet_refuses: code(signAgain),
    token_refuses_signature: code(giveUp),
    payer_has_code: code(signAgain),
  }),
  invalid_exact_evm_payload_undeployed_smart_wallet: of("invalid_payload", {
    wallet_not_deployed: code(signAgain),
  }),
  insufficient_funds: of("insufficient_funds", {
    balance_too_small: state(giveUp),
    balance_taken_up: ledger({ ...wait, retryAfterSeconds: 2 }),
  }),
  invalid_transaction_state: of("invalid_transaction_state", {
    used_here: ledger({ ...giveUp, ...unknown }),
    used_on_chain: state({ ...askOperator, ...unknown }),
    under_way: ledger({ ...wait, paymentState: "in_flight", retryAfterSeconds: 2 }),
    settled_before: ledger({ ...giveUp, paymentState: "taken" }),
    transaction_failed: ledger({ ...unknown, nextAction: "poll", retryAfterSeconds: 60, poll: true }),
    failed_for_good: ledger(signAgain),
    asset_paused: state({ ...wait, retryAfterSeconds: 60 }),
    payer_blacklisted: state(giveUp),
    recipient_blacklisted: state(askOperator),
    contract_blacklisted: state(askOperator),
    would_revert: state({ ...giveUp, ...unknown }),
  }),

  // Reasons for Permit2 payments, which version 1 does not have, named as in the public packages: those act on two of them,
  // `permit2_allowance_required` and `settlement_pending`. For reasons without situations, see `permit2Reasons`.
  invalid_permit2_spender: of("invalid_payload", { spender_differs: terms(signAgain) }),
  invalid_permit2_recipient_mismatch: of("invalid_payload", {}),
  permit2_deadline_expired: of("invalid_payload", {}),
  permit2_not_yet_valid: of("invalid_payload", {}),
  permit2_amount_mismatch: of("invalid_payload", {}),
  permit2_token_mismatch: of("invalid_payload", { token_differs: terms(signAgain) }),
  asset_not_deployed_contract: of("invalid_payment_requirements", { asset_without_code: state(askOperator) }),
  invalid_permit2_signature: of("invalid_payload", {}),
  permit2_proxy_not_deployed: of("invalid_payment_requirements", { proxy_missing: state(askOperator) }),
  permit2_insufficient_balance: of("insufficient_funds", {}),
  permit2_allowance_required: of("insufficient_funds", {
    allowance_too_small: state(approve),
    approval_refused: state(signAgain),
    approval_gas_missing: state(approve),
  }),
  invalid_eip2612_extension_format: of("invalid_payload", { approval_malformed: form(signAgain) }),
  eip2612_from_mismatch: of("invalid_payload", { approval_of_other_payer: terms(signAgain) }),
  eip2612_asset_mismatch: of("invalid_payload", { approval_of_other_token: terms(signAgain) }),
  eip2612_spender_not_permit2: of("invalid_payload", { approval_for_other_spender: terms(signAgain) }),
  permit2_2612_amount_mismatch: of("invalid_payload", { approval_amount_differs: terms(signAgain) }),
  eip2612_deadline_expired: of("invalid_payload", { approval_expired: time(signAgain) }),
  invalid_erc20_approval_extension_format: of("invalid_payload", {
    approval_transaction_malformed: form(signAgain),
  }),
  erc20_approval_from_mismatch: of("invalid_payload", {
    approval_transaction_of_other_payer: terms(signAgain),
  }),
  erc20_approval_asset_mismatch: of("invalid_payload", {
    approval_transaction_of_other_token: terms(signAgain),
  }),
  erc20_approval_spender_not_permit2: of("invalid_payload", {
    approval_transaction_for_other_spender: terms(signAgain),
  }),
  erc20_approval_tx_parse_failed: of("invalid_payload", { approval_transaction_unreadable: form(signAgain) }),
  erc20_approval_tx_wrong_target: of("invalid_payload", { approval_transaction_to_other: terms(signAgain) }),
  erc20_approval_tx_wrong_selector: of("invalid_payload", {
    approval_transaction_of_other_call: terms(signAgain),
  }),
  erc20_approval_tx_wrong_spender: of("invalid_payload", {
    approval_transaction_approves_other: terms(signAgain),
  }),
  erc20_approval_tx_invalid_calldata: of("invalid_payload", {
    approval_transaction_call_malformed: form(signAgain),
    approval_transaction_approves_less: terms(signAgain),
  }),
  erc20_approval_tx_signer_mismatch: of("invalid_payload", {
    approval_transaction_by_other: signature(signAgain),
  }),
  erc20_approval_tx_invalid_signature: of("invalid_payload", {
    approval_transaction_signature_malformed: signature(signAgain),
  }),
  erc20_approval_broadcast_failed: of("invalid_transaction_state", {
    approval_transaction_not_sent: state(signAgain),
    approval_transaction_fails: state(approve),
  }),
  permit2_simulation_failed: of("invalid_transaction_state", {
    permit_would_revert: state({ ...giveUp, ...unknown }),
  }),
  invalid_upto_evm_scheme: of("invalid_payload", { schemes_differ: terms(fixRequest) }),
  upto_facilitator_mismatch: of("invalid_payload", { facilitator_differs: terms(signAgain) }),
  invalid_upto_evm_payload_settlement_exceeds_amount: of("invalid_payment_requirements", {
    amount_above_maximum: terms(fixRequest),
  }),
};

/** Permit2's names for reasons that other methods have, too. */
export const permit2Reasons: Readonly<Partial<Record<InvalidReason, InvalidReason>>> = {
  invalid_exact_evm_payload_recipient_mismatch: "invalid_permit2_recipient_mismatch",
  invalid_exact_evm_payload_authorization_value: "permit2_amount_mismatch",
  invalid_exact_evm_payload_authorization_valid_after: "permit2_not_yet_valid",
  invalid_exact_evm_payload_authorization_valid_before: "permit2_deadline_expired",
  invalid_exact_evm_payload_signature: "invalid_permit2_signature",
  invalid_exact_evm_payload_undeployed_smart_wallet: "invalid_permit2_signature",
  insufficient_funds: "permit2_insufficient_balance",
};

/** Version 2's names for reasons of version 1, if the payment method has none of its own. */
export const reasonsOfV2: Readonly<Partial<Record<InvalidReason, InvalidReason>>> = {
  invalid_exact_evm_payload_authorization_value: "invalid_exact_evm_payload_authorization_value_mismatch",
};

export type InvalidReason = keyof typeof reasons;

export const invalidReasons = Object.keys(reasons) as [InvalidReason, ...InvalidReason[]];

/** The reasons of a scheme with a list of its own, which web pages with the fixtures do not load: `channel-reasons.ts`. */
export type SchemeReason = `invalid_batch_settlement_evm_${string}`;

/** The errorReason of a v2 settle: the verify reason itself, a pending settlement, or “could not tell”. */
export type SettleErrorReasonV2 = InvalidReason | "settlement_pending" | "unexpected_settle_error";

export type SettleErrorReason = SettleErrorReasonV1 | SettleErrorReasonV2 | SchemeReason;

/** The situations in which a payment is refused. */
export type RefusedSituation = {
  [Reason in InvalidReason]: keyof (typeof reasons)[Reason]["situations"];
}[InvalidReason];

/** Situations without a reason of their own: no decision was made, or the reason is another refusal's. */
const withoutReason = {
  use_unknown: state({ ...unknown, nextAction: "retry_same_payment", retryAfterSeconds: 2 }),
  pending: ledger({ nextAction: "poll", paymentState: "in_flight", retryAfterSeconds: 2, poll: true }),
  request_refused: form({ ...fixRequest, ...unknown }),
  identifier_reused: ledger({ ...giveUp, ...unknown }),
  verify_refused: form(fixRequest),
  verify_not_allowed: ledger(askOperator),
  not_allowed: ledger({ ...askOperator, ...unknown }),
  no_verdict: state({ ...unknown, nextAction: "retry_same_payment", retryAfterSeconds: 1 }),
};

export type Situation = RefusedSituation | keyof typeof withoutReason;

/** Every situation in which a response is not a success, and its consequences. */
export const situations: Readonly<Record<Situation, Row>> = Object.assign(
  {},
  ...Object.values(reasons).map((reason) => reason.situations),
  withoutReason,
);

export function isSituation(name: unknown): name is Situation {
  return typeof name === "string" && Object.hasOwn(situations, name);
}

/**
 * True if one of `deciders` decides in a situation. If only the reason is known, as from another facilitator, they
 * must decide in each of its situations.
 */
export function isDecidedBy(
  { situation, reason }: { situation?: unknown; reason?: unknown },
  ...deciders: DecidedBy[]
): boolean {
  const rows: readonly Row[] = isSituation(situation)
    ? [situations[situation]]
    : invalidReasons
        .filter((one) => [one, permit2Reasons[one], reasonsOfV2[one]].some((name) => name === reason))
        .flatMap((one) => Object.values(reasons[one].situations));
  return rows.length > 0 && rows.every(({ decidedBy }) => deciders.includes(decidedBy));
}

export function reasonOf(situation: RefusedSituation): InvalidReason {
  return invalidReasons.find((reason) => situation in reasons[reason].situations) as InvalidReason;
}

/** Other names for reasons. */
export type ReasonNames = Readonly<
  Partial<Record<InvalidReason | SchemeReason, InvalidReason | SchemeReason>>
>;

/** Renames the reason of a refusal for its payment method and protocol version. */
export function withReasonOfMethod<R extends Invalid | undefined>(
  refusal: R,
  { words, x402Version }: { words: { reasons: ReasonNames }; x402Version: 1 | 2 },
): R {
  const names: ReasonNames = reasonsOfV2;
  const reason =
    refusal && (words.reasons[refusal.reason] ?? (x402Version === 2 ? names[refusal.reason] : undefined));
  return reason === undefined ? refusal : { ...refusal, reason };
}

/** The half of the request that is at fault. */
export type InvalidPart = "payload" | "requirements";

/** A definite decision that the payment is not good, and why. */
export type Invalid = {
  /** Determines what the client should do. */
  situation: Situation;
  reason: InvalidReason | SchemeReason;
  /** One sentence for the caller: what is wrong and what would be right. Never internal error text. */
  message: string;
  /** The message without the advice that may follow. */
  fact: string;
  /** The path of the member at fault, if it is a single one; the message about a malformed one starts with it. */
  at?: string;
  /** The value there and the required one, for people; absent if it is malformed. */
  got?: string;
  expected?: string;
  /** The transaction that was reverted. */
  transaction?: string;
  /** The reference facilitator's reason, if it does not follow from the reason or the situation. */
  reference?: ReferenceReason;
  /** When to try again, if known. */
  retryAfterSeconds?: number | string | undefined;
  /**
   * The chain's time that the payment's own times were compared with, in Unix seconds; a placeholder in expected responses.
   */
  chainTime?: bigint | string;
};

/** Creates a refusal. */
export function invalid(situation: RefusedSituation, fact: string, advice?: string): Invalid {
  const message = limitMessage(advice === undefined ? fact : `${fact}. ${advice}`);
  return { situation, reason: reasonOf(situation), message, fact };
}

/** Splits a message of {@link invalid} into what is wrong and, if present, what to do. */
export function splitMessage(message: string): { fact: string; advice: string | undefined } {
  const { index } = /\. (?=[A-Z])/.exec(message) ?? {};
  if (index === undefined) return { fact: message, advice: undefined };
  return { fact: message.slice(0, index), advice: message.slice(index + 2) };
}

/** Like {@link invalid}, for one member of the request; the message is its path and the problem. */
export function invalidAt(situation: RefusedSituation, at: string, problem: string): Invalid {
  return { ...invalid(situation, at + problem), at };
}

/** Like {@link invalid}, for one member with another value than the required one. */
export function differs(
  situation: RefusedSituation,
  { at, got, expected }: { at: string; got: string; expected: string },
  advice?: string,
): Invalid {
  return { ...invalid(situation, `${at} is ${got}, but must be ${expected}`, advice), at, got, expected };
}

/** The longest message in a response, in characters; public schemas allow no more. */
export const longestMessage = 500;

/** Makes a message fit for responses: printable ASCII, and within the limit of public schemas. */
export function limitMessage(message: string): string {
  const plain = message
    .replace(/[“”]/g, '"')
    .replace(/…/g, "...")
    .replace(/[^\x20-\x7e]/g, "?");
  return plain.length > longestMessage ? `${plain.slice(0, longestMessage - 3)}...` : plain;
}

/** The code with which a settle of the given protocol version reports an invalid payment. */
export function settleErrorReason(
  { situation, reason }: Pick<Invalid, "situation" | "reason">,
  x402Version: 1 | 2,
): SettleErrorReason {
  if (x402Version === 2) return reason;
  // Version 1 has no scheme with reasons of its own.
  return situations[situation].settleV1 ?? reasons[reason as InvalidReason].settleV1;
}

/** The members as they are written; in expected responses the seconds may be a placeholder. */
export type NextStep = {
  situation: Situation;
  nextAction: keyof typeof nextActions;
  paymentState: keyof typeof paymentStates;
  retryAfterSeconds?: number | string;
  poll?: string;
};

/** The consequences of a refusal. `settlementId` is the payment's, if it could be read. */
export function nextStepOfRefusal(
  { situation, retryAfterSeconds: seconds }: Pick<Invalid, "situation" | "retryAfterSeconds">,
  settlementId?: string,
): NextStep {
  const { nextAction, paymentState, retryAfterSeconds: usual, poll } = situations[situation];
  const retryAfterSeconds = seconds ?? usual;
  return {
    situation,
    nextAction,
    paymentState,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(poll && settlementId !== undefined && { poll: settlementPath(settlementId) }),
  };
}

/** The consequences of a problem. */
export function nextStepOfProblem(
  operation: "verify" | "settle",
  status: number,
  retryAfterSeconds?: number | string,
): NextStep {
  return nextStepOfRefusal({ situation: situationOfProblem(operation, status), retryAfterSeconds });
}

/**
 * For 4xx the request is wrong, otherwise nothing is known. A verify takes no money; but before a settle that was not
 * processed, an earlier request may have.
 */
export function situationOfProblem(operation: "verify" | "settle", status: number): Situation {
  const isVerify = operation === "verify";
  if (status === 403) return isVerify ? "verify_not_allowed" : "not_allowed";
  if (status === 409 && !isVerify) return "identifier_reused";
  if (status >= 500 || status === 429 || status === 408) return "no_verdict";
  return isVerify ? "verify_refused" : "request_refused";
}
