import { hashMessage, hashTypedData } from "viem";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { membersOf } from "../../../src/util/json.ts";
import type { RequestRow } from "./build-request.ts";

/* Mistakes in how values are written, in the shape of a request, and in what a wallet was asked to sign. */

const { usdc } = networks.base;
const wallet = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const usdbc = "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA";
const base64 = (text: string) => Buffer.from(text).toString("base64");
const digits = /\bdecimal digits\b/;
const address = /must be an address: 0x and 40 hexadecimal digits/;

/** A price that is not written as digits. */
const price = (written: unknown, cause: RegExp): RequestRow => ({
  shop: { maxAmountRequired: written },
  signs: { value: "10000" },
  cause: [/maxAmountRequired/, cause],
  change: [/"10000"/],
});

export const written: Readonly<Record<string, RequestRow>> = {
  "writes payTo with a large X": {
    shop: { payTo: wallet.replace("0x", "0X") },
    cause: [/paymentRequirements\.payTo/, /capital/],
    change: [/Begin it with 0x/],
    never: /and has 40|quotes/,
    answer: [/payTo/, address],
  },
  "names payTo by an ENS name": {
    shop: { payTo: "shop.eth" },
    cause: [/paymentRequirements\.payTo/, /shop\.eth/],
    change: [/Resolve/],
    never: /quotes/,
    answer: [/payTo/, address],
  },
  "leaves 0x out of payTo": {
    shop: { payTo: wallet.slice(2) },
    cause: [/paymentRequirements\.payTo/],
    change: [/\b0x\b/],
    never: /quotes/,
  },
  "has a line break behind payTo": {
    shop: { payTo: `${wallet}\n` },
    cause: [/paymentRequirements\.payTo/, /line break/],
    change: [/Leave out the line break/],
    answer: [/payTo/, address],
  },
  "has the quotes of a .env file around payTo": {
    shop: { payTo: `"${wallet}"` },
    cause: [/paymentRequirements\.payTo/, /quotes/],
    change: [/Leave out the quotes/],
    answer: [/payTo/, address],
  },
  "has a private key as payTo": {
    shop: { payTo: `0x${"12".repeat(32)}` },
    cause: [/paymentRequirements\.payTo/, /64/],
    change: [/40/],
    never: /1212121212/,
  },
  "asks for the token by its symbol": {
    shop: { asset: "USDC" },
    cause: [/paymentRequirements\.asset/, /address/],
    change: [new RegExp(usdc.address)],
    answer: [/asset/, address],
  },
  "asks for bridged USDC": {
    shop: { asset: usdbc, extra: { name: "USD Base Coin", version: "1" } },
    domain: { verifyingContract: usdbc, name: "USD Base Coin", version: "1" },
    cause: [/address of USDbC/],
    change: [new RegExp(usdc.address)],
    answer: [new RegExp(usdbc), new RegExp(usdc.address)],
  },
  "asks for USDC of another network": {
    shop: { asset: networks.polygon.usdc.address },
    cause: [/USDC on polygon/],
    change: [new RegExp(usdc.address)],
  },
  "writes the price in hexadecimal": {
    ...price("0x2710", /hexadecimal digits/),
    answer: [/maxAmountRequired/, digits],
  },
  "writes the price with a comma": {
    ...price("10,000", /separators/),
    answer: [/maxAmountRequired/, digits],
  },
  "writes the price with an exponent": { ...price("1e4", /exponent/), answer: [/maxAmountRequired/, digits] },
  "writes the price with a space": {
    ...price("10000 ", /Leave out the space/),
    answer: [/maxAmountRequired/, digits],
  },
  "writes the price as a number": { ...price(10_000, /JSON numbers/), answer: [/maxAmountRequired/, digits] },
  "writes the price as 0.01": price("0.01", /point|dollars/),
  "writes a negative price": {
    shop: { maxAmountRequired: "-10000" },
    signs: { value: "10000" },
    cause: [/maxAmountRequired/, /sign|negative/],
    change: [digits],
  },
  "writes the signed value as a number": {
    sends: { value: 10_000 },
    cause: [/authorization\.value/, /JSON numbers/],
    change: [/"10000"/],
    answer: [/authorization\.value/, digits],
  },
  "writes validBefore as a number": {
    sends: { validBefore: 1_900_000_000 },
    cause: [/authorization\.validBefore/, /JSON numbers/],
    change: [/"1900000000"/],
    answer: [/validBefore/, digits],
  },
  "writes validBefore as a date": {
    sends: { validBefore: "2030-01-01T00:00:00Z" },
    cause: [/authorization\.validBefore/, /date/],
    change: [/1893456000/],
    answer: [/validBefore/, digits],
  },
  "counts validBefore in milliseconds": {
    signs: { validBefore: `${Date.now() + 60_000}` },
    cause: [/1[0-9]{12}/],
    change: [/Divide by 1000/],
  },
  "signs until the end of time": {
    signs: { validBefore: `${2n ** 256n - 1n}` },
    cause: [/valid (until|for)|validBefore/],
    change: [/earlier validBefore|few minutes/],
  },
  "counts nonces as Ethereum does": {
    sends: { nonce: "1" },
    cause: [/authorization\.nonce/, /32 bytes/],
    change: [/random/],
    answer: [/nonce/, /64 hexadecimal digits/],
  },
  "leaves 0x out of the nonce": {
    sends: { nonce: "ab".repeat(32) },
    cause: [/authorization\.nonce/],
    change: [/\b0x\b/],
  },
  "leaves 0x out of the signature": {
    edit: ({ paymentPayload: { payload } }) =>
      Object.assign(Object(payload), { signature: `${membersOf(payload).signature}`.slice(2) }),
    cause: [/payload\.signature/],
    change: [/\b0x\b/],
  },
  "sends r, s and v instead of a signature": {
    edit: ({ paymentPayload: { payload } }) =>
      Object.assign(Object(payload), { signature: { r: "0x1", s: "0x2", v: 27 } }),
    cause: [/payload\.signature/],
    change: [/Join r, s and v/],
    answer: [/signature/, /string/],
  },
  "sends a compact signature": {
    edit: ({ paymentPayload: { payload } }) =>
      Object.assign(Object(payload), { signature: `${membersOf(payload).signature}`.slice(0, 130) }),
    cause: [/64 bytes/],
    change: [/sign typed data/i],
  },
  "signs by personal_sign": {
    sign: (account, typed) => account.signMessage({ message: { raw: hashTypedData(typed) } }),
    cause: [/personal_sign/],
    change: [/eth_signTypedData_v4/],
    answer: [/not that of/, /typed data|another key/],
  },
  "signs the JSON by personal_sign": {
    sign: (account, typed) => account.signMessage({ message: JSON.stringify(typed.message) }),
    cause: [/personal_sign/],
    change: [/eth_signTypedData_v4/],
    answer: [/not that of/, /typed data|another key/],
  },
  "signs a hash that is prefixed twice": {
    sign: (account, typed) => account.signMessage({ message: hashMessage({ raw: hashTypedData(typed) }) }),
    cause: [/other domains were tried/],
    change: [/another key/],
  },
  "pays by a smart wallet that is not deployed, without ERC-6492": {
    sends: { from: wallet },
    edit: ({ paymentPayload: { payload } }) =>
      Object.assign(Object(payload), { signature: `0x${"12".repeat(160)}` }),
    cause: [/no code at|not deployed/],
    change: [/Deploy the wallet/],
    answer: [/160 bytes/, /without code/],
  },
  "sends to another recipient than payTo": {
    signs: { to: wallet },
    cause: [/authorization\.to/, new RegExp(wallet, "i")],
    change: [/sign again|before the payer signs/i],
    never: /quotes|spaces/,
  },
  "has its own wallet as payTo": {
    shop: { payTo: wallet },
    cause: [/payTo/, new RegExp(wallet, "i")],
    change: [/facilitator contract/],
  },
  "names maxAmountRequired in version 2": {
    version: 2,
    edit: ({ paymentRequirements: asked }) => {
      asked.maxAmountRequired = asked.amount;
      delete asked.amount;
    },
    cause: [/amount/, /maxAmountRequired/],
    change: [/amount.{0,20}version 2|version 2.{0,60}amount/i],
    answer: [/paymentRequirements\.amount/],
  },
  "sends accepts for paymentRequirements": {
    edit: (body) => {
      const { paymentRequirements, ...others } = body;
      Object.assign(body, { ...others, accepts: [paymentRequirements] });
      Reflect.deleteProperty(body, "paymentRequirements");
    },
    cause: [/accepts/],
    change: [/as paymentRequirements/],
    answer: [/paymentRequirements must be an object/],
  },
  "writes the members as Python does": {
    write: ({ paymentPayload, paymentRequirements }) =>
      JSON.stringify({ payment_payload: paymentPayload, payment_requirements: paymentRequirements }),
    cause: [/payment_payload/],
    change: [/paymentPayload/],
    answer: [/paymentPayload must be an object/],
  },
  "sends paymentHeader, as the first version did": {
    write: ({ paymentPayload, paymentRequirements }) =>
      JSON.stringify({ paymentHeader: base64(JSON.stringify(paymentPayload)), paymentRequirements }),
    cause: [/paymentHeader/],
    change: [/paymentPayload/, /decode/i],
    answer: [/paymentPayload must be an object/],
  },
  "passes the header on without decoding it": {
    write: (body) => JSON.stringify({ ...body, paymentPayload: base64(JSON.stringify(body.paymentPayload)) }),
    cause: [/paymentPayload/, /without decoding|object/],
    change: [/JSON\.parse\(Buffer/],
    answer: [/paymentPayload must be an object/],
  },
  "encodes the header twice and passes it on": {
    write: (body) =>
      JSON.stringify({ ...body, paymentPayload: base64(base64(JSON.stringify(body.paymentPayload))) }),
    // Possible secrets in a body that the service has seen are masked, and can no longer be decoded.
    cause: [/twice|without decoding it|Decode it first/],
    change: [/once|JSON\.parse\(Buffer/],
    answer: [/paymentPayload must be an object/],
  },
  "sends the body as a text of JSON": {
    write: (body) => JSON.stringify(JSON.stringify(body)),
    cause: [/twice/],
    change: [/JSON\.stringify once/],
    answer: [/paymentPayload must be an object/],
  },
  "prints a dict of Python as the body": {
    write: (body) => JSON.stringify(body).replaceAll('"', "'"),
    cause: [/column 2/],
    change: [/json\.dumps|double quotes/],
    answer: [/column 2/],
  },
  "sends a form": {
    type: "application/x-www-form-urlencoded",
    write: (body) => new URLSearchParams({ payment: JSON.stringify(body) }).toString(),
    cause: [/content-type|application\/x-www-form-urlencoded/],
    change: [/application\/json/],
  },
  "spells the network with a capital": {
    shop: { network: "Base" },
    cause: [/network/],
    change: [/\bbase\b/],
  },
  "calls the network base-mainnet": {
    shop: { network: "base-mainnet" },
    cause: [/network/],
    change: [/\bbase\b(?!-)/],
  },
  "names the network by its chain id": {
    shop: { network: 8453 },
    cause: [/network/],
    change: [/"base"/],
    answer: [/network must be a string/],
  },
  "misspells the network in CAIP-2": {
    version: 2,
    shop: { network: "eip155-8453" },
    cause: [/network/],
    change: [/eip155:8453/],
  },
  "names the network of version 1 in version 2": {
    version: 2,
    shop: { network: "base" },
    cause: [/network/],
    change: [/eip155:8453/],
  },
  "pays on another network than the shop's": {
    edit: ({ paymentPayload }) => Object.assign(paymentPayload, { network: "polygon" }),
    cause: [/polygon/, /\bbase\b/],
    change: [/requirements that the payer chose|[Pp]ass on/],
  },
  "offers a scheme that nobody has": {
    shop: { scheme: "subscription" },
    cause: [/scheme/, /subscription/],
    change: [/"exact"/],
  },
  "writes x402Version as text": {
    edit: ({ paymentPayload }) => Object.assign(paymentPayload, { x402Version: "1" }),
    cause: [/x402Version/, /text/],
    change: [/number 1|without quotes/],
  },
  "leaves x402Version out": {
    edit: ({ paymentPayload }) => Object.assign(paymentPayload, { x402Version: undefined }),
    cause: [/x402Version/],
    change: [/1 or 2/],
  },
  "writes a payment of version 1 with the number of version 2": {
    edit: ({ paymentPayload }) => Object.assign(paymentPayload, { x402Version: 2 }),
    cause: [/version/, /accepted|members/],
    change: [/x402Version 1|one version throughout/],
  },
  "writes extra as a text of JSON": {
    shop: { extra: JSON.stringify({ name: "USD Coin", version: "2" }) },
    domain: { name: undefined, version: undefined },
    cause: [/extra|no name/],
    change: [/name "USD Coin"/],
    answer: [/no name/],
  },
  "has quotes around its key": {
    key: (good) => good.replace(/(Bearer )?(.*)/, '$1"$2"'),
    cause: [/quotes around the key/],
    change: [/Bearer KEY/],
  },
  "writes Bearer twice": {
    key: (good) => `Bearer Bearer ${good.replace("Bearer ", "")}`,
    cause: [/Bearer twice/],
    change: [/Bearer KEY/],
  },
  "has the placeholder of the documentation as its key": {
    key: { header: "Bearer YOUR_API_KEY" },
    cause: [/not known here/],
    change: [/up --env/],
    answer: [/not known here/],
  },
  "pays from an account without money": {
    signer: "empty",
    signs: { from: testPayers.empty.address },
    cause: [/holds 0 USDC/],
    change: [/0\.01 USDC/],
  },
  "asks by OPTIONS, as the page of another origin does": {
    method: "OPTIONS",
    cause: [/OPTIONS/],
    change: [/--cors-origins/],
    answer: [/OPTIONS is not allowed/, /POST/],
  },
  "has /v1 twice in the URL": {
    path: "/v1/v1/verify",
    cause: [/\/v1\/v1\/verify/],
    change: [/POST \/v1\/verify|\/v1/],
  },
};
