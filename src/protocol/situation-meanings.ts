import type { Situation } from "./situations.ts";

/** What the situations are, for docs/errors.md. It has its own file because web pages with the fixtures do not need it. */
export const situationMeanings: Readonly<Record<Situation, string>> = {
  request_wrong: "The payment or the requirements are malformed, or ask for what is not settled here",
  authorization_wrong:
    "The authorization is not what is needed: value, times or signature; and it was not used, here or on chain",
  not_valid_yet: "`validAfter` has not passed yet",
  payer_cannot_pay: "The payer has too little, is blacklisted, or is a wallet that does not agree",
  payer_has_code:
    "The payer has code, and the organization takes plain accounts only: one of these pays instead",
  wallet_not_deployed: "The payer is a smart wallet that is not deployed: once it is, it signs again",
  balance_taken_up: "Other settlements under way use up the payer's balance",
  asset_paused: "The token is paused by its issuer",
  contract_blacklisted: "The facilitator contract, or the organization's wallet, is blacklisted",
  under_way: "Another request is settling this payment",
  pending:
    "The transaction is sent, and not decided in time (503); or the payment came again with other terms before its success was handed over",
  settled_before: "The payment was settled before, and its success was handed over",
  used_here: "The authorization was used here before; the caller may not be the one whose payment it was",
  used_on_chain:
    "The authorization was used or cancelled by another party: the token does not tell the two apart",
  use_unknown:
    "The authorization is not what is needed, and the chain could not be asked whether it was used: a payment that the ledger does not know may have been made",
  transaction_failed:
    "The transaction was reverted. The payment may still be made by others and recovered, until the answer to the same payment is `sign_again`: half an hour after `validBefore`",
  failed_for_good:
    "The transaction was reverted, and half an hour after `validBefore` nobody has used the authorization: nobody can",
  request_refused:
    "A settle was not looked at (4xx): the key, the body or the headers are wrong. This request took nothing; an earlier one with the same payment may have",
  identifier_reused:
    "The payment's identifier was another payment's (409), which may have been taken: what it names is not to be paid a second time",
  verify_refused:
    "A verify was not looked at (4xx): the key, the body or the headers are wrong. A verify takes nothing",
  verify_not_allowed:
    "A verify was not looked at (403): the organization lacks a recipient, or the key a scope",
  not_allowed:
    "A settle was not looked at (403): the organization lacks a recipient, or the key a scope. An earlier one with the same payment may have taken it",
  no_verdict: "There is no verdict (408, 429, 5xx)",
};
