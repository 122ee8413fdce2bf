import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import type { RequestRow } from "./build-request.ts";

/* Mistakes in what is signed, in the terms, and in requests to the facilitator, each refused by the facilitator itself. */

const { usdc } = networks.base;
const otherKey = /sign with the key of/i;
const wrongChain = (id: number): RequestRow => ({
  domain: { chainId: id },
  cause: [new RegExp(`chainId ${id}\\b`)],
  change: [/8453/],
  never: otherKey,
});

/** An older USDC on base, which is bridged and has no EIP-3009. */
const usdbc = "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA";

export const requests: Readonly<Record<string, RequestRow>> = {
  "signs for chain id 1": wrongChain(1),
  "signs for chain id 31337": wrongChain(31_337),
  "signs for chain id 43113": wrongChain(43_113),
  "signs for chain id 11155111": wrongChain(11_155_111),
  "leaves name out of the domain": {
    domain: { name: undefined },
    cause: [/no name/],
    change: [/name "USD Coin"/],
    never: otherKey,
  },
  "leaves chainId out of the domain": {
    domain: { chainId: undefined },
    cause: [/no chainId/],
    change: [/8453/],
    never: otherKey,
  },
  "leaves version out of the domain": {
    domain: { version: undefined },
    cause: [/no version/],
    change: [/version "2"/],
    never: otherKey,
  },
  "leaves verifyingContract out of the domain": {
    domain: { verifyingContract: undefined },
    cause: [/no verifyingContract/],
    change: [new RegExp(usdc.address)],
    never: otherKey,
  },
  "has the address of a sibling token in the domain": {
    domain: { verifyingContract: usdbc },
    cause: [new RegExp(usdbc, "i"), /USDbC/],
    change: [new RegExp(usdc.address)],
    never: otherKey,
  },
  "signs for a domain that nobody can guess": {
    domain: { name: "My Coin" },
    cause: [/other domains were tried/],
    change: [/another key/, /another domain/],
    never: /whatever domain/,
  },
  "signs with another key": {
    signer: "empty",
    cause: [new RegExp(testPayers.funded.address, "i")],
    change: [/sign with the key of|another key/i],
    never: /whatever domain/,
  },
  "leaves extra out, so that its clients sign without name and version": {
    shop: { extra: undefined },
    domain: { name: undefined, version: undefined },
    cause: [/no name/, /no version/],
    change: [/name "USD Coin"/],
    never: otherKey,
    challenge: /^extra/,
  },
  "counts the price with 18 decimals": {
    shop: { maxAmountRequired: "10000000000000000" },
    cause: [/maxAmountRequired|price|amount/i, /18 decimals/, /10,000,000,000 USDC/],
    change: [/10000\b/],
    never: /Fund the|Give the payer|x402-kit fund/,
    challenge: /^The amount is off by a power of ten \(accepts\[0\]\.maxAmountRequired\)/,
  },
  "has a maxTimeoutSeconds of 300000": {
    shop: { maxTimeoutSeconds: 300_000 },
    cause: [/paymentRequirements\.maxTimeoutSeconds/, /300000/],
    change: [/86400/],
    never: /has expired|clock/,
    challenge: /^maxTimeoutSeconds .* \(accepts\[0\]\.maxTimeoutSeconds\)/,
  },
  "has a maxTimeoutSeconds of 1": {
    shop: { maxTimeoutSeconds: 1 },
    cause: [/paymentRequirements\.maxTimeoutSeconds/, /\b1\b/],
    change: [/\b60\b/],
    never: /payer's clock/,
    challenge: /^maxTimeoutSeconds .* \(accepts\[0\]\.maxTimeoutSeconds\)/,
  },
  "writes the price in dollars": {
    shop: { maxAmountRequired: "$0.01" },
    signs: { value: "10000" },
    cause: [/paymentRequirements\.maxAmountRequired/],
    change: [/smallest unit/, /"10000"/],
    challenge: /^The amount is written in dollars/,
  },
  "names the token in extra as the test networks do": {
    shop: { extra: { name: "USDC", version: "2" } },
    domain: { name: "USDC" },
    cause: [/extra/, /"USDC"/],
    change: [/"USD Coin"/],
    never: otherKey,
    challenge: /^extra does not name the token/,
  },
  "offers scheme upto to a client that pays exact": {
    shop: { scheme: "upto" },
    edit: ({ paymentPayload }) => Object.assign(paymentPayload, { scheme: "exact" }),
    cause: [/paymentRequirements\.scheme/, /upto/],
    change: [/version 2/],
    never: /\bdecimal digits/,
    challenge: /^.*\(accepts\[0\]\.scheme\)/,
  },
  "misspells the scheme": {
    shop: { scheme: "exactt" },
    edit: ({ paymentPayload }) => Object.assign(paymentPayload, { scheme: "exact" }),
    cause: [/paymentRequirements\.scheme/, /exactt/],
    change: [/"exact"/],
    never: /\bdecimal digits/,
    challenge: /^.*\(accepts\[0\]\.scheme\)/,
  },
  "sends all offers as requirements": {
    edit: (body) => Object.assign(body, { paymentRequirements: [body.paymentRequirements] }),
    cause: [/paymentRequirements/, /array|list/],
    change: [/accepts|the one|one of/],
    never: /\bdecimal digits/,
  },
  "shortens payTo": {
    shop: { payTo: "0x857b06519E91e3A54538791bDbb0E22373e36b" },
    sends: { to: testPayers.empty.address },
    cause: [/paymentRequirements\.payTo/, /38/],
    change: [/40/],
    never: /\bdecimal digits/,
    challenge: /^.*\(accepts\[0\]\.payTo\)/,
  },
  "sends no key": {
    key: { header: undefined },
    cause: [/no Authorization header/],
    change: [/send the API key|Send the API key/],
  },
  "sends a key that is not known": {
    key: { header: "Bearer x4k_nobody_secret" },
    cause: [/not known/],
    change: [/revoked/],
    never: /no Authorization header/,
  },
  "sends a variable that is not set as its key": {
    key: { header: "Bearer undefined" },
    cause: [/undefined/],
    change: [/variable/],
  },
  "asks at a path that does not exist": {
    path: "/v2/verify",
    cause: [/\/v2\/verify/],
    change: [/POST \/v1\/verify|\/v1/],
    never: /An unreadable request/,
  },
  "asks with another method": {
    method: "PUT",
    cause: [/PUT/],
    change: [/POST/],
    never: /An unreadable request/,
  },
};
