import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { recoverSigner } from "../chain/signing/recover-signer.ts";
import { type AuthorizationTerms, signAuthorization } from "../methods/exact-eip3009/authorization.ts";
import { buildPaymentRequest } from "../methods/exact-eip3009/eip3009-method.ts";
import { methodOf, parsePaymentRequest } from "../methods/methods.ts";
import { testPayers } from "../payer/test-payers.ts";
import { longestMessage } from "./catalogue.ts";
import { checkTerms, checkValidityWindow, type ServedNetwork } from "./checks.ts";
import type { Address } from "./hex.ts";
import { type Asset, type Network, networks } from "./networks.ts";
import { refusals } from "./refusals.ts";

/*
 * Shops and payers as developers break them, and what the one message in the answer tells them to change.
 */

const contract = "0xc0ffee0000000000000000000000000000004020";
const wallet = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const served: ServedNetwork = {
  name: "base",
  facilitatorContract: contract,
  assets: [networks.base.usdc],
};
const now = 1_800_000_000n;
const payer = privateKeyToAccount(testPayers.funded.privateKey);

type Shop = {
  /** Members that the payer signs instead. */
  signs?: Partial<AuthorizationTerms>;
  signer?: typeof payer;
  /** Members that the shop asks for instead. */
  payTo?: Address;
  amount?: bigint;
  network?: Network;
  asset?: Asset;
  x402Version?: 1 | 2;
  /** Changes the finished body. */
  change?: (body: Record<string, Record<string, unknown>>) => void;
};

/** The message that a facilitator on base gives. */
async function messageOf(shop: Shop): Promise<string> {
  const { network = networks.base, payTo = contract, amount = 10_000n, x402Version = 1 } = shop;
  const asset = shop.asset ?? network.usdc;
  const { authorization, signature } = await signAuthorization(shop.signer ?? payer, {
    ...{ asset, chainId: network.chainId, to: payTo, value: amount, validBefore: now + 60n },
    from: payer.address,
    ...shop.signs,
  });
  const written: unknown = buildPaymentRequest({
    ...{ x402Version, network, asset, payTo, amount, authorization, signature },
    resource: "https://shop.example/",
  });
  const body = written as Record<string, Record<string, unknown>>;
  shop.change?.(body);
  const read = parsePaymentRequest(body);
  if (!read.ok) return read.invalid.message;
  const { request } = read;
  const checking = { method: methodOf(request.payment), operation: "verify" } as const;
  const refusal =
    request.knownNetwork.name !== served.name
      ? refusals.networkNotEnabled(request.network, [served.name])
      : (checkTerms(request, served, checking) ?? checkValidityWindow(request, now, served));
  if (refusal !== undefined) return refusal.message;
  const domain = { asset: networks.base.usdc, chainId: 8453 };
  const mistake = await methodOf(request.payment).describeWrongSignature(
    request.payment,
    domain,
    recoverSigner,
  );
  const signedFor = request.words.domain(domain.asset);
  return refusals.notSignedByPayer(payer.address, "base", signedFor, mistake).message;
}

const { usdc } = networks.base;

test.each<[string, Shop, RegExp]>([
  [
    "its own wallet as payTo",
    { payTo: wallet },
    /^paymentRequirements\.payTo is 0x857b.*must be the facilitator contract 0xc0ffee.*org set-recipient/,
  ],
  [
    "a payer that signs for the shop's wallet",
    { signs: { to: wallet } },
    /^authorization\.to is 0x857b.*must be the facilitator contract 0xc0ffee.*sign again/,
  ],
  [
    "a price with the decimals twice",
    { signs: { value: 10_000_000_000n } },
    /is 10,000 USDC \(10000000000\), but exactly 0\.01 USDC \(10000\) is required.*differ by 10\^6.*the token's decimals twice/,
  ],
  [
    "a price in dollars",
    { change: (body) => Object.assign(body.paymentRequirements ?? {}, { maxAmountRequired: "0.01" }) },
    /maxAmountRequired: .*smallest unit.*0\.01 USDC is "10000"/,
  ],
  [
    "a price as a number",
    { change: (body) => Object.assign(body.paymentRequirements ?? {}, { maxAmountRequired: 10_000 }) },
    /maxAmountRequired: must be a string of decimal digits/,
  ],
  [
    "another version in the domain",
    { signs: { asset: { ...usdc, version: "1" } } },
    /\(name "USD Coin", version "2"\)\. It was signed with version "1" instead of "2"\..*extra/,
  ],
  [
    "the name that USDC has on the test networks",
    { signs: { asset: { ...usdc, name: "USDC" } } },
    /It was signed with name "USDC" instead of "USD Coin"\..*extra/,
  ],
  [
    "a payer that signs for another network",
    { signs: { asset: networks.polygon.usdc, chainId: 137 } },
    /It was signed with chainId 137 \(polygon\) instead of 8453, verifyingContract 0x3c4\S+ \(USDC on polygon\) instead of 0x8335/,
  ],
  [
    "a payer that signs with the chain id of the network's other tier",
    { signs: { asset: usdc, chainId: 84_532 } },
    /It was signed with chainId 84532 \(base-sepolia\) instead of 8453\. .*the network's chain id/,
  ],
  [
    "an authorization that has expired",
    { signs: { validBefore: now - 5n } },
    /valid before 1799999995 \(2027-01-15 07:59:55 UTC, 5 s ago\); the chain's time is 1800000000.*Sign again with a later validBefore/,
  ],
  [
    "times in milliseconds",
    { signs: { validBefore: (now + 60n) * 1_000n } },
    /valid before 1800000060000.*Divide by 1000/,
  ],
  [
    "a network that is not served",
    { network: networks.polygon },
    /^polygon is not enabled here; enabled: base\. Offer and sign for one of these/,
  ],
  [
    "a network in the spelling of the other version",
    { change: (body) => Object.assign(body.paymentPayload ?? {}, { network: "eip155:8453" }) },
    /paymentPayload\.network must be one of base.*: base in version 1/,
  ],
  [
    "the USDC of another network",
    { asset: networks.optimism.usdc },
    /is USDC on optimism, is not accepted on base; accepted: 0x833589.*own USDC/,
  ],
  [
    "another key than the payer's",
    { signer: privateKeyToAccount(testPayers.empty.privateKey) },
    new RegExp(
      `the signature of ${testPayers.empty.address}; \\d+ other domains were tried.*sign with the key of authorization\\.from`,
      "i",
    ),
  ],
  [
    "a signature of one byte",
    { change: (body) => Object.assign(body.paymentPayload?.payload ?? {}, { signature: "0x01" }) },
    /It has 1 byte, and that of an account without code has 65\. Let the wallet sign typed data/,
  ],
  [
    "a network by its name in version 1, in version 2",
    {
      x402Version: 2,
      change: (body) => Object.assign(body.paymentPayload?.accepted ?? {}, { network: "base" }),
    },
    /accepted\.network must be the CAIP-2 name of a supported network: eip155:8453 in version 2$/,
  ],
])("%s: the message alone says what to change", async (_what, shop, says) => {
  const message = await messageOf(shop);
  expect(message).toMatch(says);
  expect(message).toMatch(/^[\x20-\x7e]+$/);
  expect(message.length).toBeLessThanOrEqual(longestMessage);
});

test("a message is reduced to printable ASCII and to the longest that answers may have", () => {
  const { message } = refusals.failed("0x12", `“ä”…${"x".repeat(600)}`);
  expect(message).toMatch(/^[\x20-\x7e]{500}$/);
  expect(message).toContain('"?"...x');
});
