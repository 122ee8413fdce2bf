import {
  type InvalidReason,
  isSituation,
  type SettleErrorReasonV2,
  type Situation,
  splitMessage,
} from "./catalogue.ts";
import { type ChannelReason, channelReason } from "./channel-reasons.ts";
import { channelTexts } from "./channel-texts.ts";
import type { MistakeId } from "./mistakes.ts";
import { isProblem, problemTexts } from "./problems.ts";
import { specReason } from "./reference-reasons.ts";
import { type Rules, rules } from "./specification.ts";

/*
 * The catalogue's texts for people, read by `explain`, docs/errors.md, the OpenAPI document and the conformance
 * report. The keys are the names in `catalogue.ts`, so a reason or a situation without a text does not compile.
 */

/** The text in docs/errors.md about a situation. */
type SituationText = {
  means: string;
  /** If there is more to say than about its reason. */
  why?: string;
  fix?: string;
  /** The mistakes that usually lead to it. */
  mistakes?: readonly MistakeId[];
  /** The sentence of the specification that it is based on; a situation without one is this kit's choice. */
  rule?: Rules;
};

/** The text of `explain` about a reason if nothing more exact is known. */
type ReasonText = {
  meaning: string;
  fix: string;
  /** The command that fixes it on a local chain. */
  locally?: string;
};

const valueText: ReasonText = {
  meaning: "authorization.value is not exactly the required amount.",
  fix: "Sign exactly the required amount.",
};

export const reasonTexts: Readonly<
  Record<InvalidReason | SettleErrorReasonV2 | "unexpected_verify_error", ReasonText>
> = {
  invalid_payload: {
    meaning: "The payment could not be read. A v1 settle also says it where verify names a finer reason.",
    fix: "Send what the message names as the protocol has it; `x402-kit explain` lists everything that is wrong with a body.",
  },
  invalid_x402_version: {
    meaning: "paymentPayload.x402Version is neither 1 nor 2.",
    fix: "Send x402Version 1 or 2 as a number.",
  },
  unsupported_scheme: {
    meaning: "The scheme is neither “exact” nor, in version 2, “upto” or “batch-settlement”.",
    fix: 'Use scheme "exact"; in version 2 also "upto" or "batch-settlement".',
  },
  invalid_network: {
    meaning: "The network is unknown or not served here, or payment and requirements name different ones.",
    fix: "Name the same supported network in the payment and in the requirements, in the spelling of the version.",
  },
  invalid_payment_requirements: {
    meaning: "What the seller asks for cannot be settled: amount, asset or payTo.",
    fix: "Change the seller's requirements as the message says; the payer then signs for the new ones. A wallet as payTo needs PAY_TO=any, or `up --pay-to any`.",
  },
  invalid_exact_evm_payload_recipient_mismatch: {
    meaning:
      "authorization.to is not the payTo of the requirements: the facilitator contract, unless PAY_TO allows others.",
    fix: "Offer the facilitator contract as payTo, and sign again; or allow payments straight to your wallet: PAY_TO=any, or `up --pay-to any`.",
  },
  invalid_exact_evm_payload_authorization_value: valueText,
  invalid_exact_evm_payload_authorization_value_mismatch: valueText,
  invalid_exact_evm_payload_authorization_valid_after: {
    meaning: "The authorization is not valid yet by the chain's clock.",
    fix: 'Wait until validAfter has passed, or sign with validAfter "0".',
  },
  invalid_exact_evm_payload_authorization_valid_before: {
    meaning: "The authorization has expired by the chain's clock, or is about to.",
    fix: "Sign again with a validBefore between 6 seconds and a day ahead.",
  },
  invalid_exact_evm_payload_signature: {
    meaning: "The signature is not the payer's over this authorization, on this chain, for this token.",
    fix: "Sign the authorization as it is sent, with the payer's key and the token's own domain.",
  },
  invalid_exact_evm_payload_undeployed_smart_wallet: {
    meaning: "The payer is a smart wallet without code yet, and the facilitator does not deploy it.",
    fix: "Deploy the wallet, then sign again; or pay by EIP-3009 where the operator calls its factory (WALLET_FACTORIES).",
  },
  insufficient_funds: {
    meaning: "The payer's balance does not hold the amount, or other settlements under way use it up.",
    fix: "Give the payer more of the token, or wait for the settlements under way.",
    locally: "x402-kit fund",
  },
  invalid_transaction_state: {
    meaning:
      "The authorization was used or cancelled, a party is blacklisted, the token is paused, or the transaction was mined and reverted.",
    fix: "Sign each payment with a new nonce; if this one was settled before, it is paid. If its transaction reverted, or others used it, do as `nextAction` says before anything is signed again. A blacklisted party cannot pay or be paid.",
  },
  invalid_permit2_spender: {
    meaning: "permit2Authorization.spender is not the proxy of x402 for the scheme.",
    fix: "Sign for x402ExactPermit2Proxy with scheme exact, for x402UptoPermit2Proxy with scheme upto.",
  },
  invalid_permit2_recipient_mismatch: {
    meaning: "permit2Authorization.witness.to is not the payTo of the requirements.",
    fix: "Offer the facilitator contract as payTo, and sign again.",
  },
  permit2_deadline_expired: {
    meaning: "The permit has expired by the chain's clock, is about to, or is good for too long.",
    fix: "Sign again with a deadline between 6 seconds and a day ahead.",
  },
  permit2_not_yet_valid: {
    meaning: "The permit is not valid yet by the chain's clock.",
    fix: 'Wait until witness.validAfter has come, or sign with "0".',
  },
  permit2_amount_mismatch: {
    meaning: "permit2Authorization.permitted.amount is not exactly the required amount.",
    fix: "Sign exactly the required amount; of scheme upto the maximum that the requirements name.",
  },
  permit2_token_mismatch: {
    meaning: "permit2Authorization.permitted.token is not the asset of the requirements.",
    fix: "Sign for the token that is asked for.",
  },
  asset_not_deployed_contract: {
    meaning: "There is no contract at the asset's address on this chain.",
    fix: "Ask those who run the facilitator: it accepts an asset that is not there.",
  },
  invalid_permit2_signature: {
    meaning: "The signature is not the payer's over this permit, on this chain.",
    fix: "Sign the permit as it is sent, with the payer's key and the domain of Permit2.",
  },
  permit2_proxy_not_deployed: {
    meaning: "The proxy of x402 for Permit2 is not on this chain.",
    fix: "Pay by EIP-3009, or on another network; `x402-kit doctor` says where the proxies are.",
  },
  permit2_insufficient_balance: {
    meaning: "The payer's balance does not hold the amount, or other payments of the payer use it up.",
    fix: "Give the payer more of the token, or wait for the payments under way.",
    locally: "x402-kit fund",
  },
  permit2_allowance_required: {
    meaning: "The payer has not let Permit2 take so much of the token.",
    fix: "Let the payer approve Permit2 on the token, once for each token, and send the same payment again; the message has a command.",
    locally: "x402-kit approve",
  },
  invalid_eip2612_extension_format: {
    meaning: "The approval of Permit2 that came with the payment (eip2612GasSponsoring) cannot be read.",
    fix: "Send the members that the message names, or leave the extension out and approve Permit2.",
  },
  eip2612_from_mismatch: {
    meaning: "The approval that came with the payment is of another account than the payer's.",
    fix: "Sign the approval as the payer.",
  },
  eip2612_asset_mismatch: {
    meaning: "The approval that came with the payment is for another token than the one that is paid.",
    fix: "Sign the approval for the token that is paid.",
  },
  eip2612_spender_not_permit2: {
    meaning: "The approval that came with the payment lets another contract than Permit2 take tokens.",
    fix: "Sign the approval for Permit2, not for the proxy or the facilitator.",
  },
  permit2_2612_amount_mismatch: {
    meaning: "The approval that came with the payment is of another amount than the payment.",
    fix: "Sign the approval for exactly permit2Authorization.permitted.amount; the proxies of x402 take no other.",
  },
  eip2612_deadline_expired: {
    meaning: "The approval that came with the payment has expired by the chain's clock, or is about to.",
    fix: "Sign the approval again, with the deadline of the payment.",
  },
  invalid_erc20_approval_extension_format: {
    meaning: "The transaction that came with the payment (erc20ApprovalGasSponsoring) cannot be read.",
    fix: "Send the members that the message names, or leave the extension out and approve Permit2.",
  },
  erc20_approval_from_mismatch: {
    meaning: "The transaction that came with the payment is said to be of another account than the payer's.",
    fix: "Sign it as the payer.",
  },
  erc20_approval_asset_mismatch: {
    meaning:
      "The transaction that came with the payment is said to be for another token than the one that is paid.",
    fix: "Sign it for the token that is paid.",
  },
  erc20_approval_spender_not_permit2: {
    meaning:
      "The transaction that came with the payment is said to let another contract than Permit2 take tokens.",
    fix: "Sign it for Permit2, not for the proxy or the facilitator.",
  },
  erc20_approval_tx_parse_failed: {
    meaning: "The approval that came with the payment is no signed transaction that would be sent.",
    fix: "Sign a transaction of type 2 (EIP-1559) with an empty access list, and send all of its bytes. Types 1 (EIP-2930) and 0 (legacy, with a chain id) are accepted too.",
  },
  erc20_approval_tx_wrong_target: {
    meaning: "The transaction that came with the payment calls another contract than the token.",
    fix: "Sign a call of the token that is paid.",
  },
  erc20_approval_tx_wrong_selector: {
    meaning: "The transaction that came with the payment calls another function than approve.",
    fix: "Sign approve(Permit2, amount) and nothing else.",
  },
  erc20_approval_tx_wrong_spender: {
    meaning: "The transaction that came with the payment approves another contract than Permit2.",
    fix: "Sign the approval for Permit2, not for the proxy or the facilitator.",
  },
  erc20_approval_tx_invalid_calldata: {
    meaning:
      "The call in the transaction that came with the payment is malformed, or approves less than the payment.",
    fix: "Sign approve(Permit2, amount) with the amount of the payment, or more.",
  },
  erc20_approval_tx_signer_mismatch: {
    meaning: "The transaction that came with the payment is signed by another account than the payer.",
    fix: "Sign it with the payer's key; wallets with code cannot.",
  },
  erc20_approval_tx_invalid_signature: {
    meaning: "The transaction that came with the payment has no signature that the chain could take.",
    fix: "Sign it again, with s in the lower half.",
  },
  erc20_approval_broadcast_failed: {
    meaning: "The transaction that came with the payment is not sent: it would not be mined, or not approve.",
    fix: "Sign it again for the chain, with the account's next nonce and the fees of the moment, or let the payer approve Permit2.",
  },
  permit2_simulation_failed: {
    meaning: "The settlement would revert, and nothing in the chain's state says why.",
    fix: "Do not pay so again: the token or the payer's wallet refuses. The message has what the chain said.",
  },
  invalid_upto_evm_scheme: {
    meaning: "The payment and the requirements are of different schemes.",
    fix: "Pass on the requirements that the payer chose from the challenge.",
  },
  upto_facilitator_mismatch: {
    meaning:
      "permit2Authorization.witness.facilitator is not this facilitator's contract, so that it cannot submit the payment.",
    fix: "Put the facilitatorAddress that GET /supported gives into extra of the requirements, and sign again.",
  },
  invalid_upto_evm_payload_settlement_exceeds_amount: {
    meaning: "Settle asks for more than the maximum that the payer signed.",
    fix: "Settle that maximum or less.",
  },
  unexpected_verify_error: { meaning: "No verdict (503).", fix: "Send the same payment again." },
  unexpected_settle_error: {
    meaning: "No verdict (503): the payment may have been settled.",
    fix: "Send the same payment again, never a new one.",
  },
  settlement_pending: {
    meaning: "The transaction is on its way and named in the answer.",
    fix: "Send the same payment again.",
  },
};

const walletDecides =
  "There is code at the payer's address: it decides by isValidSignature which signatures count, and has little gas for that.";
const signAsWallet =
  "Sign with the key of the wallet's owner, in the form that the wallet asks for, over the authorization as it is sent; or pay from another account.";

/** Every situation in which a response is not a success. */
export const situationTexts: Readonly<Record<Situation, SituationText>> = {
  payload_malformed: {
    means: "The payment is malformed",
    mistakes: ["not-decoded", "encoded-twice", "missing-member", "number-too-large", "malformed-signature"],
    rule: rules.payload,
  },
  version_unknown: {
    means: "The payment is of a version of the protocol that does not exist, or says none",
    mistakes: ["missing-member", "wrong-version"],
    rule: rules.version,
  },
  scheme_of_payload: {
    means:
      "The payment is of a scheme that its version does not have here: “exact”, and in version 2 “upto” and “batch-settlement”",
    mistakes: ["unknown-scheme"],
    rule: rules.supported,
  },
  scheme_of_requirements: {
    means: "The requirements ask for a scheme that their version does not have here",
    mistakes: ["unknown-scheme"],
    rule: rules.supported,
  },
  network_of_requirements: {
    means: "The requirements name a network that is not known",
    mistakes: ["unknown-network", "wrong-version"],
    rule: rules.supported,
  },
  network_of_payload: {
    means: "The payment names a network that is not known",
    mistakes: ["unknown-network", "wrong-version"],
    rule: rules.supported,
  },
  network_not_enabled: {
    means: "The network is known, and not served here",
    mistakes: ["unknown-network"],
    rule: rules.supported,
  },
  networks_differ: {
    means: "The payment and the requirements name different networks",
    mistakes: ["networks-differ"],
    rule: rules.parameters,
  },
  requirements_malformed: {
    means: "The requirements are malformed, or their two forms contradict each other",
    mistakes: ["amount-in-dollars", "number-too-large", "missing-member"],
    rule: rules.requirements,
  },
  asset_not_accepted: {
    means: "The asset is not accepted on the network",
    mistakes: ["wrong-asset"],
    rule: rules.simulation,
  },
  pay_to_not_accepted: {
    means: "The requirements' `payTo` is not the facilitator contract, nor a wallet that `PAY_TO` allows",
    mistakes: ["pay-to-not-accepted", "other-tier"],
    rule: rules.parameters,
  },
  amount_below_minimum: { means: "The amount is below the organization's minimum" },
  amount_zero: { means: "The amount is 0", mistakes: ["amount-zero"] },
  asset_paid_otherwise: {
    means: "The asset is accepted, but not paid in this way",
    why: "Not every token has EIP-3009, and an operator chooses how each may be paid.",
    fix: "Offer the assetTransferMethod that the message names in extra, and let the payer sign again.",
  },
  spender_differs: { means: "The permit is signed for another spender than the proxy of x402" },
  token_differs: { means: "The permit is signed for another token than the asset" },
  asset_without_code: { means: "The chain has no contract at the asset's address" },
  proxy_missing: { means: "The chain has no proxy of x402 for Permit2" },
  allowance_too_small: {
    means:
      "The payer has approved Permit2 for less than the amount, or not at all; the public servers answer 412 for it",
  },
  approval_refused: {
    means: "The approval that came with the payment is refused by the token: by its nonce or its signature",
    why: "Approvals by EIP-2612 are used in turn, and signed under the token's own domain, not that of Permit2.",
    fix: "Read `nonces(payer)` of the token, sign the approval again, and send it with the same payment.",
  },
  approval_malformed: { means: "The approval that came with the payment cannot be read" },
  approval_of_other_payer: { means: "The approval is of another account than the payer's" },
  approval_of_other_token: { means: "The approval is for another token than the one that is paid" },
  approval_for_other_spender: { means: "The approval is not for Permit2" },
  approval_amount_differs: { means: "The approval is of another amount than the payment permits" },
  approval_expired: { means: "The approval's `deadline` has passed, or is less than 6 seconds away" },
  approval_gas_missing: {
    means:
      "The payer cannot pay for the approval that came as a transaction, and the facilitator gives nothing for it, or nothing more",
    why: "What is given for approvals has limits: once for each payer and token, at most what 70,000 gas cost at twice the base fee of late and a usual tip, and so much on one day.",
    fix: "Let the payer approve Permit2 with gas money of its own, and send the same payment again.",
  },
  approval_transaction_malformed: { means: "The transaction that came to approve Permit2 cannot be read" },
  approval_transaction_of_other_payer: {
    means: "The transaction is said to be of another account than the payer's",
  },
  approval_transaction_of_other_token: {
    means: "The transaction is said to be for another token than the one that is paid",
  },
  approval_transaction_for_other_spender: { means: "The transaction is said not to be for Permit2" },
  approval_transaction_unreadable: {
    means: "The bytes are no signed transaction of type 2, 1 or 0 for one chain with an empty access list",
  },
  approval_transaction_to_other: { means: "The transaction calls another contract than the token" },
  approval_transaction_of_other_call: { means: "The transaction calls another function than approve" },
  approval_transaction_call_malformed: { means: "The calldata of the transaction is not that of approve" },
  approval_transaction_approves_other: { means: "The transaction approves another contract than Permit2" },
  approval_transaction_approves_less: { means: "The transaction approves less than the payment permits" },
  approval_transaction_by_other: { means: "The transaction is signed by another account than the payer" },
  approval_transaction_signature_malformed: {
    means: "The signature of the transaction is none that the chain takes",
  },
  approval_transaction_not_sent: {
    means:
      "The transaction is for another chain, sends coins along, has another nonce than the payer's next one, or a gas limit or fees outside of what is sent",
    why: "Nodes would refuse it, keep it waiting, or have the facilitator pay for more than an approval.",
    fix: "Read the account's nonce and the fees of the moment, and sign it again; it goes with the same payment.",
  },
  approval_transaction_fails: {
    means: "The token refuses the approval: tokens such as USDT want the one before to be 0 first",
  },
  permit_would_revert: {
    means: "The settlement by Permit2 would revert, and nothing in the chain's state says why",
  },
  schemes_differ: {
    means: "The payment and the requirements are of different schemes",
    rule: rules.parameters,
  },
  facilitator_differs: { means: "The permit names another facilitator than this one's contract" },
  amount_above_maximum: { means: "Settle asks for more than the payer allowed" },
  recipient_differs: {
    means: "The authorization is signed to another address than the requirements' `payTo`",
    mistakes: ["signed-for-another-recipient", "other-tier"],
    rule: rules.parameters,
  },
  value_differs: {
    means: "The signed value is not the required amount",
    mistakes: ["amount-differs", "amount-off-by-decimals"],
    rule: rules.amount,
  },
  never_valid: {
    means: "`validAfter` is in milliseconds; or the token found that it had not passed",
    mistakes: ["times-in-milliseconds"],
    rule: rules.time,
  },
  not_valid_yet: { means: "`validAfter` has not passed yet", mistakes: ["not-valid-yet"], rule: rules.time },
  expired: {
    means: "`validBefore` has passed, or is less than 6 seconds away",
    mistakes: ["expired", "timeout-out-of-range"],
    rule: rules.time,
  },
  valid_too_long: {
    means: "`validBefore` is further ahead than the facilitator accepts",
    why: "The authorization is valid for longer than the facilitator accepts: a day, unless configured otherwise.",
    fix: "Let the payer sign until a few minutes from now; clients take the time from maxTimeoutSeconds of the requirements.",
    mistakes: ["timeout-out-of-range", "valid-too-long", "times-in-milliseconds"],
  },
  signature_wrong: {
    means: "The signature is not the payer's",
    mistakes: [
      "extra-differs",
      "signed-with-another-domain",
      "signed-other-values",
      "signed-receive",
      "signed-by-another-key",
      "malformed-signature",
    ],
    rule: rules.signature,
  },
  wallet_refuses: {
    means: "The payer's wallet does not accept the signature (ERC-1271)",
    why: walletDecides,
    fix: signAsWallet,
  },
  token_refuses_signature: {
    means: "The token does not accept the signature: code at the payer's address decides there",
    why: walletDecides,
    fix: signAsWallet,
  },
  payer_has_code: {
    means: "The payer has code, and the organization takes plain accounts only: one of these pays instead",
    why: "The organization refuses contract wallets and accounts with a delegate (EIP-7702); the signature is not at fault.",
    fix: "Pay from a plain account, or let the organization accept them: `x402-kit org set-limits --payers-with-code accept`.",
  },
  wallet_not_deployed: {
    means: "The payer is a smart wallet that is not deployed: once it is, it signs again",
    mistakes: ["undeployed-wallet"],
  },
  balance_too_small: {
    means: "The payer has too little",
    mistakes: ["amount-off-by-decimals"],
    rule: rules.balance,
  },
  balance_taken_up: { means: "Other settlements under way use up the payer's balance" },
  used_here: {
    means: "The authorization was used here before; the caller may not be the one whose payment it was",
    why: "A payment pays once: this authorization was used, or cancelled by its payer.",
    fix: "If this very payment was settled before, it is paid: deliver once, and serve nothing if that was done. Otherwise sign with a new nonce; each payment needs one of its own.",
  },
  used_on_chain: {
    means: "The authorization was used or cancelled by another party: the token does not tell the two apart",
    why: "The token has this authorization as used, or cancelled by its payer, and this facilitator did not settle it.",
    fix: "Look up what used it before the payer signs again; each payment needs a nonce of its own.",
  },
  under_way: {
    means: "Another request is settling this payment",
    why: "The same payment is being settled by a request that came before this one.",
    fix: "Wait for the answer of that request, or send the same payment again in a few seconds. Do not sign again.",
  },
  settled_before: {
    means: "The payment was settled before, and its success was handed over",
    why: "Each authorization pays once, and this one has.",
    fix: "Deliver what was paid for once; if that was done, serve nothing. For another purchase, sign with a new nonce.",
    rule: rules.simulation,
  },
  transaction_failed: {
    means:
      "The transaction was reverted. The payment may still be made by others and recovered, until the answer to the same payment is `sign_again`: half an hour after `validBefore`",
    why: "The transaction was mined and reverted. Until validBefore has passed, the payment may still be made by others and recovered.",
    fix: "Ask for the settlement, which the header Location of the answer names, until it is recovered, or send the same payment again until the answer says sign_again, half an hour after validBefore; only then sign again.",
  },
  failed_for_good: {
    means:
      "The transaction was reverted, and half an hour after `validBefore` nobody has used the authorization: nobody can",
    why: "The transaction was mined and reverted, and the authorization expired without a use by anybody.",
    fix: "Let the payer sign again: this payment was not made, and nobody can make it any more.",
  },
  asset_paused: {
    means: "The token is paused by its issuer",
    why: "The issuer of the token has stopped all transfers.",
    fix: "Send the same payment again later; the issuer says when.",
  },
  payer_blacklisted: {
    means: "The payer is blacklisted by the token's issuer",
    why: "The issuer of the token lets the payer neither send nor receive it.",
    fix: "Have another account pay: nothing that the shop or this payer changes will settle the payment.",
  },
  recipient_blacklisted: {
    means: "The organization's wallet is blacklisted by the token's issuer",
    why: "The issuer of the token lets the organization's wallet on this network not receive it.",
    fix: "Name another wallet for the network: `x402-kit org set-recipient`. The payer need not sign again.",
  },
  contract_blacklisted: {
    means: "The facilitator contract is blacklisted by the token's issuer",
    why: "The issuer of the token lets the facilitator contract neither send nor receive it.",
    fix: "Ask those who run the facilitator; other networks and tokens are not affected.",
  },
  would_revert: { means: "The settlement would revert, and nothing in the chain's state says why" },
  use_unknown: {
    means:
      "The authorization is not what is needed, and the chain could not be asked whether it was used: a payment that the ledger does not know may have been made",
    why: "The chain could not be asked whether this authorization was used.",
    fix: "Send the same payment again in a few seconds. Do not sign again before the chain could be asked.",
  },
  pending: {
    means:
      "The transaction is sent, and not decided in time (503); or the payment came again with other terms before its success was handed over",
    why: "This payment is being settled, or was and its success was not handed over yet.",
    fix: "Ask for the settlement, or send the same payment again, as it was sent first. Do not sign again.",
  },
  request_refused: {
    means:
      "A settle was not looked at (4xx): the key, the body or the headers are wrong. This request took nothing; an earlier one with the same payment may have",
  },
  identifier_reused: {
    means:
      "The payment's identifier was another payment's (409), which may have been taken: what it names is not to be paid a second time",
  },
  verify_refused: {
    means:
      "A verify was not looked at (4xx): the key, the body or the headers are wrong. A verify takes nothing",
  },
  verify_not_allowed: {
    means: "A verify was not looked at (403): the organization lacks a recipient, or the key a scope",
  },
  not_allowed: {
    means:
      "A settle was not looked at (403): the organization lacks a recipient, or the key a scope. An earlier one with the same payment may have taken it",
  },
  no_verdict: { means: "There is no verdict (408, 429, 5xx)" },
};

/** The texts about batch-settlement reasons, by their names in responses. */
export const textsOfChannels: ReadonlyMap<string, ReasonText> = new Map(
  Object.entries(channelTexts).map(([name, texts]) => [channelReason(name as ChannelReason), texts]),
);

/**
 * The meaning of a reason or problem in a situation, and what to do; undefined for an unknown reason.
 *
 * @param situation undefined if unknown, as in a response of another facilitator
 */
export function adviceOnReason(reason: string, situation: unknown): { why: string; fix: string } | undefined {
  const texts = textsOf(reason, situation);
  return (
    texts && {
      why: texts.own.why ?? texts.meaning,
      fix: withLocal(texts.own.fix ?? texts.fix, texts.locally),
    }
  );
}

/**
 * Like {@link adviceOnReason}, for a response of this service whose message is shown as the heading. The message is
 * more exact than the reason, and may end with advice for this very payment; nothing is repeated.
 */
export function adviceOnAnswer(
  reason: string,
  { situation, message }: { situation?: string | undefined; message: string },
): { fact: string; why: string; fix: string } {
  // A problem's message has facts even after its first sentence, such as the existing addresses.
  if (isProblem(reason)) return { fact: message, why: "", fix: problemTexts[reason].fix };
  const { fact, advice: said } = splitMessage(message);
  // A truncated message says less than the catalogue.
  const advice = said?.endsWith("...") ? undefined : said;
  const texts = textsOf(reason, situation);
  if (texts === undefined) return { fact, why: "", fix: advice ?? "" };
  const { own, fix, locally } = texts;
  return { fact, why: own.why ?? "", fix: withLocal(own.fix ?? advice ?? fix, locally) };
}

function textsOf(
  reason: string,
  situation: unknown,
): (ReasonText & { own: Partial<SituationText> }) | undefined {
  if (isProblem(reason)) return { meaning: "", fix: problemTexts[reason].fix, own: {} };
  const ofChannels = textsOfChannels.get(reason);
  if (ofChannels !== undefined) return { ...ofChannels, own: { why: ofChannels.meaning } };
  const name = specReason(reason);
  if (!Object.hasOwn(reasonTexts, name)) return undefined;
  const own = isSituation(situation) ? situationTexts[situation] : {};
  return { ...reasonTexts[name as keyof typeof reasonTexts], own };
}

/** The file of this package that {@link errorsSection} refers to. */
export const errorsFile = "docs/errors.md";

/** The section of docs/errors.md about a mistake, a reason or a problem; all of them have one. */
export function errorsSection(name: string): string {
  return `${errorsFile}#${name}`;
}

/** The same section at a service that shows payments: `http://127.0.0.1:4402/errors#expired`. */
export function errorsSectionAt(section: string, origin: string): string {
  return section.startsWith(errorsFile) ? `${origin}/errors${section.slice(errorsFile.length)}` : section;
}

/** Adds to an advice the command that does it on a local chain. */
export function withLocal(fix: string, command: string | undefined): string {
  return command === undefined ? fix : `${fix.replace(/\.$/, "")}. On a local chain: \`${command}\`.`;
}

/** Removes that command from an advice, if it is shown elsewhere. */
export function withoutLocal(advice: string): string {
  return advice.replace(/ On a local chain: `[^`]+`\.$/, "");
}
