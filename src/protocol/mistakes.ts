import type { InvalidReason, RefusedSituation, SchemeReason, Situation } from "./catalogue.ts";
import { advice } from "./refusals.ts";

/** Advice on signatures made for something else. Separate from `advice`, because web pages with the fixtures load it late. */
export const signatureAdvice = {
  "signed-with-another-domain":
    "Sign for the token's own name and version, which clients take from `extra` of the requirements, its address and the network's chain id.",
  "signed-receive": "Sign primaryType TransferWithAuthorization.",
  "permit-domain":
    'Sign for the domain of Permit2 on the network\'s chain: name "Permit2", no version, and the contract of Permit2.',
  "permit-spender":
    "The spender is x402ExactPermit2Proxy for scheme exact, x402UptoPermit2Proxy for scheme upto; sign what is sent.",
  "permit-witness":
    "The witness is Witness(address to,uint256 validAfter) for scheme exact, Witness(address to,address facilitator,uint256 validAfter) for scheme upto.",
  "permit-signer":
    "Sign with the key of permit2Authorization.from, and send every member as it was signed. If that is a smart wallet, the wallet itself decides (EIP-1271), and it must be deployed.",
  "malformed-signature": "Let the wallet sign typed data, and send its answer unchanged.",
} as const;

/**
 * The common mistakes in x402 payments and their fixes. One table for everything that explains: refusal messages, the command
 * `x402-kit explain`, and docs/errors.md, which is generated from it. A `fix` is sent in responses, so it is plain ASCII.
 *
 * `rank` orders findings: 1 prevents everything else from being read, 2 makes verify or a shop refuse, 5 is only worth a look.
 */
export const mistakes = {
  "not-json": {
    rank: 1,
    title: "It is neither JSON nor base64 of JSON",
    why: "A payment travels as JSON in the body of verify and settle, and as base64 of JSON in the headers X-PAYMENT and PAYMENT-SIGNATURE.",
    fix: "Pass the whole header value or the whole body. A header that was cut off, or quoted by a shell, no longer decodes.",
  },
  "encoded-twice": {
    rank: 1,
    title: "It was encoded to base64 twice",
    why: "Decoding once gives base64 again: two layers of the program encode the header.",
    fix: "Encode the JSON once. The public clients already return the finished header value.",
  },
  "not-encoded": {
    rank: 1,
    title: "A header carries JSON that is not encoded",
    why: "The headers of x402 are base64 of JSON. Whoever decodes the value first finds nothing in it.",
    fix: "Write the JSON as base64, once.",
  },
  "odd-base64": {
    rank: 5,
    title: "A header is not standard base64",
    why: "It has - or _, which belong to base64url, or lacks the = at its end. Some decoders take that, others refuse the header.",
    fix: "Write standard base64 (RFC 4648, section 4), with its padding.",
  },
  "no-challenge": {
    rank: 1,
    title: "The 402 has no challenge",
    why: "Buyers read the offers of a shop in the header PAYMENT-REQUIRED in version 2, and in the JSON body in version 1.",
    fix: "Answer 402 with x402Version and accepts.",
  },
  "misplaced-challenge": {
    rank: 2,
    title: "The challenge is where buyers of its version do not look",
    why: "Version 2 has it in the header PAYMENT-REQUIRED, version 1 in the body.",
    fix: "Put it where its x402Version says, or change that number.",
  },
  "resource-differs": {
    rank: 5,
    title: "The 402 names another URL than the one that was requested",
    why: "Catalogues list what was bought under this URL, and clients may refuse it. Behind a proxy, frameworks often name http and an internal host.",
    fix: "Name the public URL; behind a proxy, let the framework trust X-Forwarded-Proto and X-Forwarded-Host.",
  },
  "wrong-header": {
    rank: 2,
    title: "The payment is in the header of the other protocol version",
    why: "Version 1 is paid in X-PAYMENT, version 2 in PAYMENT-SIGNATURE. A shop looks into the header of its own version, and finds nothing.",
    fix: "Send a payment of version 2 as PAYMENT-SIGNATURE, and one of version 1 as X-PAYMENT.",
  },
  "accepted-differs": {
    rank: 2,
    title: "The payment differs from the shop's offer",
    why: "Shops compare it with their offers, in version 2 member by member, and answer 402 again if none is equal.",
    fix: "Send the offer back exactly as the shop wrote it. If it changes with each 402, let the shop offer the same again.",
  },
  "never-asked": {
    rank: 4,
    title: "The facilitator was never asked about this payment",
    why: "The shop refused it itself, asks another facilitator, or never got it.",
    fix: "Compare it with the shop's offer: `x402-kit explain HEADER --shop URL`. The shop's own log may say more.",
  },
  "shop-down": {
    rank: 1,
    title: "The shop does not answer",
    why: "Nothing listens at the shop's address, or it closes connections before it answers.",
    fix: "Start the shop. If it listens elsewhere, give that address: `up --shop`.",
  },
  "not-settled": {
    rank: 4,
    title: "The shop verified the payment and did not settle it",
    why: "The facilitator would have settled it. Payment middlewares settle only if the handler behind them succeeds.",
    fix: "The shop's own log says why its answer was an error. Nothing was paid here: the same payment can be sent again.",
  },
  "paid-not-served": {
    rank: 1,
    title: "The payment was settled, and the shop answered with an error",
    why: "The payer was charged, and got nothing for it.",
    fix: "Do not pay again. The shop's own log says why its answer was an error.",
  },
  "bad-receipt": {
    rank: 4,
    title: "The shop's receipt does not say that this payment was settled",
    why: "A shop that has settled sends the facilitator's answer along: PAYMENT-RESPONSE in version 2, X-PAYMENT-RESPONSE in version 1. Without it a buyer cannot tell what became of the money.",
    fix: "Let the shop answer only once settle has said success, and send that answer as the receipt.",
  },
  "not-decoded": {
    rank: 1,
    title: "A payment header is passed on without decoding it",
    why: "paymentPayload holds the text of the header where the decoded JSON object belongs.",
    fix: 'Decode it first: JSON.parse(Buffer.from(header, "base64").toString()).',
  },
  "unknown-shape": {
    rank: 1,
    title: "It is not a payment, a challenge or an answer of x402",
    why: "Nothing in it is called paymentPayload, payload, accepts, success or isValid.",
    fix: "Pass a body of verify or settle, the value of a payment header, a 402 challenge, or what a facilitator answered.",
  },
  "text-of-json": {
    rank: 1,
    title: "It is a text that holds JSON",
    why: "It begins with a quotation mark in place of a brace.",
    fix: "Call JSON.stringify once, not twice: clients such as axios call it themselves.",
  },
  "other-name": {
    rank: 2,
    title: "A required member is there by another name",
    why: "The facilitator reads members by the names of the protocol alone.",
    fix: "Give it the name that the protocol has for it.",
  },
  "missing-member": {
    rank: 2,
    title: "A required member is missing or has the wrong type",
    why: "The facilitator reads members as they are and coerces nothing.",
    fix: "Send the member as the protocol has it.",
  },
  "unknown-scheme": {
    rank: 2,
    title: "The scheme is not one that its version has here",
    why: 'Version 1 has "exact" alone. Version 2 also has "upto", for payments by Permit2 of up to a maximum, and "batch-settlement", for many purchases on one deposit.',
    fix: 'Offer and pay scheme "exact", spelled so. A client and a server of version 2 can use "upto" or "batch-settlement", too.',
  },
  "wrong-version": {
    rank: 2,
    title: "The body of one protocol version under the number of the other",
    why: "Version 1 puts scheme and network beside x402Version and names networks like “base”; version 2 puts them into “accepted” and names networks by CAIP-2, like “eip155:8453”.",
    fix: "Use one version throughout: a v1 client with a v1 server, or a v2 client with a v2 server.",
  },
  "unknown-network": {
    rank: 2,
    title: "The network is not one of the facilitator's",
    why: "The facilitator settles on the networks of GET /supported only.",
    fix: "Use one of their names in v1, and its CAIP-2 name in v2.",
  },
  "networks-differ": {
    rank: 2,
    situation: "networks_differ",
    title: "The payment and the requirements name different networks",
    why: "The payer signed for one chain and the seller asks for another.",
    fix: advice["networks-differ"],
  },
  "schemes-differ": {
    rank: 2,
    situation: "schemes_differ",
    title: "The payment and the requirements are of different schemes",
    why: "What a payer signs for scheme “upto” is not what is signed for “exact”: neither can be settled as the other.",
    fix: advice["networks-differ"],
  },
  "wrong-asset": {
    rank: 2,
    situation: "asset_not_accepted",
    title: "The asset is not the token that the network accepts",
    why: "Every network has a USDC of its own; bridged versions (USDC.e, USDbC) have no EIP-3009.",
    fix: advice["wrong-asset"],
  },
  "pay-to-not-accepted": {
    rank: 2,
    situation: "pay_to_not_accepted",
    title: "payTo is not the facilitator contract",
    why: "Payers sign a transfer to the facilitator contract, which forwards it to the wallet of your organization in the same transaction. Your own wallet is a setting of the organization. Only where PAY_TO allows it do payments go straight to a wallet.",
    fix: advice["pay-to-not-accepted"],
  },
  "pay-to-nobody": {
    rank: 2,
    title: "payTo is an address that no merchant owns",
    why: "Tokens sent to the zero address are refused by the token; tokens sent to the token's own contract are lost.",
    fix: "Set payTo to the facilitator contract, or to the merchant's own wallet if PAY_TO allows that.",
  },
  "signed-for-another-recipient": {
    rank: 2,
    situation: "recipient_differs",
    title: "The payer signed for another recipient than the payTo that is asked for",
    why: "`authorization.to`, or witness.to of a permit, is another address. The facilitator contract cannot pull it, and what goes straight to a wallet must go to payTo of the requirements.",
    fix: advice["signed-for-another-recipient"],
  },
  "other-tier": {
    rank: 2,
    title: "It is the facilitator contract of the other tier of networks",
    why: "Mainnets share one address of the contract, test networks another.",
    fix: "Use the contract of the network that is paid on: a mainnet address on mainnets, the test address on test networks.",
  },
  "amount-differs": {
    rank: 2,
    situation: "value_differs",
    title: "The signed value is not the required amount",
    why: "Scheme “exact” takes the required amount and nothing else, more included.",
    fix: advice["amount-differs"],
  },
  "amount-off-by-decimals": {
    rank: 2,
    title: "The amount is off by a power of ten",
    why: "Amounts are in the smallest unit of the token: USDC has 6 decimals, so 0.01 USDC is 10000. Factors of 10^6 or 10^12 come from counting decimals twice, or from assuming 18.",
    fix: "Multiply dollars by 10^6, once.",
  },
  "amount-in-dollars": {
    rank: 2,
    title: "The amount is written in dollars",
    why: "A decimal point or a currency sign is no number of smallest units.",
    fix: 'Write the amount in the smallest unit: $0.01 is "10000".',
  },
  "amount-zero": {
    rank: 2,
    situation: "amount_zero",
    title: "The amount is zero",
    why: "A facilitator refuses payments of nothing, unless it is configured to settle them: they cost gas and move nothing.",
    fix: 'Ask for at least "1", the smallest unit of the token; what is free needs no payment.',
  },
  "number-too-large": {
    rank: 2,
    title: "A number is too large",
    why: "Numbers of a payment are uint256 of Solidity: below 2^256, which has 78 digits.",
    fix: "Send the amount in the smallest unit of the token, once, and times in unix seconds.",
  },
  "times-in-milliseconds": {
    rank: 2,
    title: "A time is in milliseconds",
    why: "validAfter and validBefore are unix seconds, as in EIP-3009; Date.now() gives milliseconds.",
    fix: advice["times-in-milliseconds"],
  },
  "timeout-out-of-range": {
    rank: 2,
    title: "maxTimeoutSeconds makes every payment expire, or last too long",
    why: "Clients sign until maxTimeoutSeconds from now. A payment needs 6 s to be settled, and is accepted for a day at most unless the facilitator is configured otherwise.",
    fix: "Offer as many seconds as a buyer may need from signing until you settle: 60 is usual.",
  },
  expired: {
    rank: 2,
    situation: "expired",
    title: "The authorization has expired",
    why: "validBefore, or the deadline of a permit, has passed by the chain's clock, or is less than 6 s away, which is too short to settle.",
    fix: advice.expired,
  },
  "valid-too-long": {
    rank: 2,
    situation: "valid_too_long",
    title: "The authorization is valid for too long",
    why: "A payment is watched until it can no longer be settled. It is accepted for a day at most, unless the facilitator is configured otherwise.",
    fix: "Sign again, until a few minutes from now: clients take the time from maxTimeoutSeconds of the requirements.",
  },
  "not-valid-yet": {
    rank: 2,
    situation: "not_valid_yet",
    title: "The authorization is not valid yet",
    why: "validAfter lies ahead of the chain's clock: usually the payer's clock is ahead.",
    fix: advice["not-valid-yet"],
  },
  "extra-differs": {
    rank: 2,
    title: "extra does not name the token as it names itself",
    why: "Clients take the name and version to sign for (EIP-712) from `extra` of the requirements. USDC is called “USD Coin” on the mainnets and “USDC” on the Sepolia networks.",
    fix: "Put the token's own name and version into `extra` of what the seller offers; payers then sign for them.",
  },
  "signed-with-another-domain": {
    rank: 2,
    title: "The signature holds under another EIP-712 domain",
    why: "Name, version, chain id and token address are part of what is signed. USDC is called “USD Coin” on the mainnets and “USDC” on the Sepolia networks.",
    fix: signatureAdvice["signed-with-another-domain"],
  },
  "signed-other-values": {
    rank: 2,
    title: "The signature holds for other values than those that were sent",
    why: "A member of the authorization was changed after signing.",
    fix: "Send the authorization exactly as it was signed.",
  },
  "signed-receive": {
    rank: 2,
    title: "ReceiveWithAuthorization was signed",
    why: "x402 uses TransferWithAuthorization; the two have different type hashes.",
    fix: signatureAdvice["signed-receive"],
  },
  "signed-as-message": {
    rank: 2,
    title: "It was signed as a message (personal_sign), not as typed data",
    why: "A prefix is put before what is signed as a message, so that the token cannot recover the payer.",
    fix: "Have the wallet sign typed data (eth_signTypedData_v4, signTypedData), and no message (personal_sign, signMessage).",
  },
  "signed-by-another-key": {
    rank: 2,
    situation: "signature_wrong",
    title: "The signature is not the payer's",
    why: "For what was sent, it recovers to another address than authorization.from. That is so as well when a member (to, value, validAfter, validBefore, nonce) was changed after signing.",
    fix: advice["signed-by-another-key"],
  },
  "permit-domain": {
    rank: 2,
    title: "The permit is signed for another EIP-712 domain",
    why: "Permit2 has a domain of its own, with the chain id and without a version. It is not that of the token.",
    fix: signatureAdvice["permit-domain"],
  },
  "permit-spender": {
    rank: 2,
    title: "The permit is signed for another spender",
    why: "A permit names the contract that may use it. Of x402 that is one proxy for each scheme, at the same address on every chain; the facilitator is none.",
    fix: signatureAdvice["permit-spender"],
  },
  "permit-witness": {
    rank: 2,
    title: "The permit is signed with another witness",
    why: "The type of the witness is part of what is signed: its members, their names and their order.",
    fix: signatureAdvice["permit-witness"],
  },
  "permit-signer": {
    rank: 2,
    situation: "signature_wrong",
    title: "The signature of the permit is not the payer's",
    why: "It recovers to another address than permit2Authorization.from: another key signed, or a member was changed after signing.",
    fix: signatureAdvice["permit-signer"],
  },
  "permit-token": {
    rank: 2,
    situation: "token_differs",
    title: "The permit is for another token than the one that is asked for",
    why: "permitted.token is what Permit2 moves. It must be the asset of the requirements.",
    fix: "Sign again, with the asset of the requirements as permitted.token.",
  },
  "permit-facilitator": {
    rank: 2,
    situation: "facilitator_differs",
    title: "Another facilitator is named than this one",
    why: "Who submits a payment of scheme “upto”, and says how much is taken, is part of what the payer signs. Here that is the facilitator contract, whichever operator sends the transaction.",
    fix: "Offer the facilitatorAddress that GET /supported gives, in `extra`; clients sign for that.",
  },
  "malformed-signature": {
    rank: 2,
    title: "The signature has a form that USDC refuses",
    why: "USDC takes 65 bytes r, s, v with s in the lower half and v 27 or 28. Compact signatures (EIP-2098) have 64 bytes.",
    fix: signatureAdvice["malformed-signature"],
  },
  "undeployed-wallet": {
    rank: 2,
    situation: "wallet_not_deployed",
    title: "The payer is a smart wallet that is not deployed",
    why: "The signature has the ending of ERC-6492: the wallet has no code yet, so neither the token nor Permit2 can ask it.",
    fix: "Deploy the wallet, for example by its first transaction, and sign again; or pay by EIP-3009 where the operator calls the wallet's factory (WALLET_FACTORIES), which deploys the wallet with the payment.",
  },
  "outer-version-differs": {
    rank: 5,
    title: "The request names another protocol version than the payment in it",
    why: "The version of a payment is paymentPayload.x402Version; the x402Version beside paymentPayload may be left out. This facilitator does not look at it, and another one may refuse the request for it.",
    fix: "Send the x402Version of the payment beside paymentPayload, as a number, or leave it out there.",
  },
  "headers-hidden": {
    rank: 5,
    title: "Pages of other origins cannot read the headers of the 402",
    why: "The 402 lets pages in (Access-Control-Allow-Origin), and browsers show them the headers in Access-Control-Expose-Headers alone.",
    fix: "Name them in Access-Control-Expose-Headers: PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE.",
  },
  "above-usual-limit": {
    rank: 5,
    title: "The price is above what a public client pays by default",
    why: 'x402-fetch, the client of version 1, pays at most 0.1 USDC, and throws "Payment amount exceeds maximum allowed" before it signs.',
    fix: "Let buyers give a higher limit, maxValue: wrapFetchWithPayment(fetch, wallet, maxValue).",
  },
  "payment-not-seen": {
    rank: 2,
    title: "The shop answered as if no payment had come",
    why: "It said the same as without one, and did not ask the facilitator. Often something on the way drops the header.",
    fix: "Let every proxy and framework pass on the header of the payment, PAYMENT-SIGNATURE in version 2 and X-PAYMENT in version 1. If it arrives, the shop's own log says why it was refused.",
  },
  "client-error": {
    rank: 2,
    title: "It is an error of a client, and no payment",
    why: "The client failed before a facilitator could see anything.",
    fix: "Mend what the error names, and try again.",
  },
  "bad-checksum": {
    rank: 5,
    title: "An address has a wrong checksum (EIP-55)",
    why: "This facilitator compares addresses without their case. Other tools refuse a wrong checksum, and it often means that a digit is mistyped.",
    fix: "Copy the address again from its source, or write it in lower case.",
  },
  "pays-itself": {
    rank: 5,
    title: "The payer and payTo are the same account",
    why: "The payment moves nothing. Usually the shop and the buyer use the same key by mistake.",
    fix: "Give the shop and the buyer accounts of their own.",
  },
  "extra-needed-elsewhere": {
    rank: 5,
    title: "extra does not name the token, which other facilitators need",
    why: "This facilitator knows its tokens and does not look at `extra`. Another one checks the signature for the name and version that stand there, and may refuse the payment for it: invalid_exact_evm_signature, or invalid_exact_evm_missing_eip712_domain.",
    fix: "Put the token's own name and version into `extra` of what the seller offers, and send that with the payment.",
  },
  "nothing-accepted": {
    rank: 2,
    title: "The challenge offers nothing that this facilitator settles",
    why: "Each entry of `accepts` has another scheme, network, asset or payTo.",
    fix: 'Offer scheme "exact" or "upto" on a supported network with its USDC, and as payTo the facilitator contract, unless PAY_TO allows others; "batch-settlement" pays only others.',
  },
  "answer-lost": {
    rank: 4,
    title: "The answer did not reach its caller",
    why: "The caller left, or the connection broke, before the answer was there. What had begun goes on: the money may move, or has moved.",
    fix: "Send the same payment again: it moves once at most, and the answer says what became of it. Let the payer sign no other one before.",
  },
  refused: {
    rank: 4,
    title: "A facilitator refused the payment",
    why: "The answer names a reason. Those of this facilitator have a section each.",
    fix: "Pass the request itself to `x402-kit explain`: it says what in it leads there.",
  },
  undetermined: {
    rank: 4,
    title: "The facilitator could not tell",
    why: "A 503, or a settlement that is pending: neither says that the payment failed, and the money may have moved.",
    fix: "Send the same payment again, never a new one, until there is a verdict. A new signature could pay twice.",
  },
} as const satisfies Record<string, Mistake>;

/** One kind of mistake: what it is, why it matters, what to do. Plain sentences without facts of a payment. */
export type Mistake = {
  rank: 1 | 2 | 4 | 5;
  /** The refusal that it causes, if it is always the same one. */
  situation?: RefusedSituation;
  title: string;
  why: string;
  fix: string;
};

export type MistakeId = keyof typeof mistakes;

/** A mistake that was found. */
export type Finding = {
  /** A mistake, or the reason of a refusal that verify's own checks found. */
  mistake: MistakeId | InvalidReason | SchemeReason;
  /** The situation of such a refusal. */
  situation?: Situation;
  /** For a reason, which has no row in the table: the fact in one sentence. */
  title?: string;
  /** The path, such as `paymentRequirements.payTo`; empty for the whole payment. */
  at: string;
  /** The value there and the right one; absent if there is nothing to show. */
  got?: string;
  expected?: string;
  /** The change to make, with the facts of this payment. */
  fix: string;
  /** Why it matters, if more is known than the table says. */
  why?: string;
  /** The reason or problem that it is about, which has a section in docs/errors.md. */
  reason?: string;
};

/** Creates a finding with the table's own advice, unless the facts include a better one. */
export function finding(
  mistake: MistakeId,
  at: string,
  facts: Partial<Omit<Finding, "mistake" | "at">> = {},
): Finding {
  return { mistake, at, fix: mistakes[mistake].fix, ...facts };
}

/**
 * Sorts by rank; findings of equal rank keep their order, in which verify checks them. A finding that is not in the
 * table is the reason of a refusal by verify, and ranks as one.
 */
export function sortByRank<T extends { mistake: string }>(found: readonly T[]): T[] {
  return found.toSorted((a, b) => rankOf(a) - rankOf(b));
}

/** True if a finding makes a payment be refused, and is not only worth a look. */
export function isCause(found: { mistake: string }): boolean {
  return rankOf(found) < 5;
}

function rankOf({ mistake }: { mistake: string }): number {
  return isMistakeId(mistake) ? mistakes[mistake].rank : 2;
}

export function isMistakeId(name: string): name is MistakeId {
  return Object.hasOwn(mistakes, name);
}
