import { privateKeyToAccount } from "viem/accounts";
import type { HarnessDescription } from "../../src/harness/control/description.ts";
import { testPayers } from "../../src/payer/test-payers.ts";
import { networks } from "../../src/protocol/networks.ts";

/*
 * Shops and clients that go wrong, as their authors wrote them: each with what everything that explains it must name.
 */

type Json = Record<string, unknown>;

/** What a request is made of: a shop's requirements, a payer's signature over them, and how it is sent. */
type Broken = {
  /** Members of the requirements that the shop has wrong. The payer signs what they say. */
  shop?: Json;
  /** Members of the EIP-712 domain that the payer has wrong; undefined for one that is left out. */
  domain?: Json;
  /** Who signs in the payer's place. */
  signer?: keyof typeof testPayers;
  /** Members of the authorization that are signed otherwise than the requirements ask. */
  signs?: Json;
  /** What becomes of the finished body. */
  change?: (body: Record<"paymentPayload" | "paymentRequirements", Json>) => unknown;
  /** What is sent as Authorization; undefined for no such header. */
  key?: { header: string | undefined };
  method?: string;
  path?: string;
};

export type BrokenRow = Broken & {
  /** What the message of the answer, the line of `up`, `why`, `explain` and the studio all name. */
  names: readonly RegExp[];
  /** What would lead astray. */
  never?: RegExp;
  /** What `explain` of the shop's own 402 begins with, where the shop is at fault. */
  challenge?: RegExp;
};

const { usdc } = networks.base;
const otherKey = /sign with the key of/i;
const wrongChain = (id: number): BrokenRow => ({
  domain: { chainId: id },
  names: [new RegExp(`chainId ${id}\\b`), /8453/],
  never: otherKey,
});

/** An older USDC on base, which is bridged and has no EIP-3009. */
const usdbc = "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA";

export const brokenClients: Readonly<Record<string, BrokenRow>> = {
  "signs for chain id 1": wrongChain(1),
  "signs for chain id 31337": wrongChain(31_337),
  "signs for chain id 43113": wrongChain(43_113),
  "signs for chain id 11155111": wrongChain(11_155_111),
  "leaves name out of the domain": {
    domain: { name: undefined },
    names: [/no name/, /name "USD Coin"/],
    never: otherKey,
  },
  "leaves chainId out of the domain": {
    domain: { chainId: undefined },
    names: [/no chainId/, /8453/],
    never: otherKey,
  },
  "leaves version out of the domain": {
    domain: { version: undefined },
    names: [/no version/, /version "2"/],
    never: otherKey,
  },
  "leaves verifyingContract out of the domain": {
    domain: { verifyingContract: undefined },
    names: [/no verifyingContract/, new RegExp(usdc.address)],
    never: otherKey,
  },
  "has the address of a sibling token in the domain": {
    domain: { verifyingContract: usdbc },
    names: [new RegExp(usdbc, "i"), /USDbC/, new RegExp(usdc.address)],
    never: otherKey,
  },
  "signs for a domain that nobody can guess": {
    domain: { name: "My Coin" },
    names: [/other domains were tried/, /another key/, /another domain/],
    never: /whatever domain/,
  },
  "signs with another key": {
    signer: "empty",
    names: [new RegExp(testPayers.funded.address, "i"), /sign with the key of|another key/i],
    never: /whatever domain/,
  },
  "leaves extra out, so that its clients sign without name and version": {
    shop: { extra: undefined },
    domain: { name: undefined, version: undefined },
    names: [/no name/, /no version/, /name "USD Coin"/],
    never: otherKey,
    challenge: /^extra/,
  },
  "counts the price with 18 decimals": {
    shop: { maxAmountRequired: "10000000000000000" },
    names: [/maxAmountRequired|price|amount/i, /18 decimals/, /10,000,000,000 USDC/, /10000\b/],
    never: /Fund the|Give the payer|x402-kit fund/,
    challenge: /^The amount is off by a power of ten \(accepts\[0\]\.maxAmountRequired\)/,
  },
  "has a maxTimeoutSeconds of 300000": {
    shop: { maxTimeoutSeconds: 300_000 },
    names: [/paymentRequirements\.maxTimeoutSeconds/, /300000/, /86400/],
    never: /has expired|clock/,
    challenge: /^maxTimeoutSeconds .* \(accepts\[0\]\.maxTimeoutSeconds\)/,
  },
  "has a maxTimeoutSeconds of 1": {
    shop: { maxTimeoutSeconds: 1 },
    names: [/paymentRequirements\.maxTimeoutSeconds/, /\b1\b/, /\b60\b/],
    never: /payer's clock/,
    challenge: /^maxTimeoutSeconds .* \(accepts\[0\]\.maxTimeoutSeconds\)/,
  },
  "writes the price in dollars": {
    shop: { maxAmountRequired: "$0.01" },
    signs: { value: "10000" },
    names: [/paymentRequirements\.maxAmountRequired/, /smallest unit/, /"10000"/],
    challenge: /^The amount is written in dollars/,
  },
  "names the token in extra as the test networks do": {
    shop: { extra: { name: "USDC", version: "2" } },
    domain: { name: "USDC" },
    names: [/extra/, /"USDC"/, /"USD Coin"/],
    never: otherKey,
    challenge: /^extra does not name the token/,
  },
  "offers scheme upto to a client that pays exact": {
    shop: { scheme: "upto" },
    change: ({ paymentPayload }) => Object.assign(paymentPayload, { scheme: "exact" }),
    names: [/paymentRequirements\.scheme/, /upto/, /version 2/],
    never: /\bdecimal digits/,
    challenge: /^.*\(accepts\[0\]\.scheme\)/,
  },
  "misspells the scheme": {
    shop: { scheme: "exactt" },
    change: ({ paymentPayload }) => Object.assign(paymentPayload, { scheme: "exact" }),
    names: [/paymentRequirements\.scheme/, /exactt/, /"exact"/],
    never: /\bdecimal digits/,
    challenge: /^.*\(accepts\[0\]\.scheme\)/,
  },
  "sends all offers as requirements": {
    change: (body) => Object.assign(body, { paymentRequirements: [body.paymentRequirements] }),
    names: [/paymentRequirements/, /array|list/, /accepts|the one|one of/],
    never: /\bdecimal digits/,
  },
  "shortens payTo": {
    shop: { payTo: "0x857b06519E91e3A54538791bDbb0E22373e36b" },
    change: ({ paymentPayload: { payload } }) =>
      Object.assign(Object(payload).authorization, { to: testPayers.empty.address }),
    names: [/paymentRequirements\.payTo/, /38/, /40/],
    never: /\bdecimal digits/,
    challenge: /^.*\(accepts\[0\]\.payTo\)/,
  },
  "sends no key": {
    key: { header: undefined },
    names: [/no Authorization header/, /Authorization/],
  },
  "sends a key that is not known": {
    key: { header: "Bearer x4k_nobody_secret" },
    names: [/not known|revoked/],
    never: /no Authorization header/,
  },
  "sends a variable that is not set as its key": {
    key: { header: "Bearer undefined" },
    names: [/undefined/, /variable/],
  },
  "asks at a path that does not exist": {
    path: "/v2/verify",
    names: [/POST \/v1\/verify|\/v1/],
    never: /An unreadable request/,
  },
  "asks with another method": {
    method: "PUT",
    names: [/POST/, /PUT/],
    never: /An unreadable request/,
  },
};

/** A request, with its body as JSON. */
export type BrokenRequest = { path: string; method: string; headers: Record<string, string>; body: string };

/** The request of a broken client, and the 402 that its shop answers with. */
export async function brokenRequest(
  row: Broken,
  { networks: running, organization }: HarnessDescription,
): Promise<BrokenRequest & { challenge: string }> {
  const { shop = {}, domain = {}, signs = {}, key, signer = "funded" } = row;
  const { base } = running;
  if (base === undefined) throw new Error("base does not run");
  const now = Math.floor(Date.now() / 1_000);
  const requirements: Json = {
    ...{ scheme: "exact", network: "base", maxAmountRequired: "10000", asset: base.asset.address },
    ...{ payTo: base.payTo, maxTimeoutSeconds: 60, resource: "https://shop.example/", description: "" },
    ...{ mimeType: "application/json", extra: { name: base.asset.name, version: base.asset.version } },
    ...shop,
  };
  const message = {
    from: testPayers.funded.address,
    to: base.payTo,
    value: String(requirements.maxAmountRequired),
    validAfter: "0",
    validBefore: String(now + Number(requirements.maxTimeoutSeconds)),
    nonce: `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex")}`,
    ...signs,
  };
  const all = {
    name: usdc.name,
    version: "2",
    chainId: 8453,
    verifyingContract: base.asset.address,
    ...domain,
  };
  const member = (name: string, type: string) => ({ name, type });
  const signature = await privateKeyToAccount(testPayers[signer].privateKey).signTypedData({
    domain: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
    primaryType: "TransferWithAuthorization",
    types: {
      TransferWithAuthorization: [
        ...["from", "to"].map((name) => member(name, "address")),
        ...["value", "validAfter", "validBefore"].map((name) => member(name, "uint256")),
        member("nonce", "bytes32"),
      ],
    },
    message,
  });
  const body = {
    x402Version: 1,
    paymentPayload: {
      ...{ x402Version: 1, scheme: requirements.scheme, network: "base" },
      payload: { signature, authorization: message },
    },
    paymentRequirements: requirements,
  };
  row.change?.(body);
  const header = key === undefined ? organization.apiKey : key.header;
  return {
    path: row.path ?? "/v1/verify",
    method: row.method ?? "POST",
    headers: header === undefined ? {} : { authorization: header },
    body: JSON.stringify(body),
    challenge: JSON.stringify({ x402Version: 1, error: "pay", accepts: [requirements] }),
  };
}
