import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createFixtureEngine } from "../../../src/fixtures/engine/engine.ts";
import { type MockServer, startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { signPayment } from "../../../src/harness/control/pay.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { maxUint256 } from "../../../src/protocol/wire-values.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { membersOf } from "../../../src/util/json.ts";
import { goods, startMerchant } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { startTestHarness } from "../../support/service.ts";

/* `POST /__payment`: a test in a language without own cryptography gets a signed payment, and sends it itself. */

let mock: MockServer;
let harness: RunningHarness;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base", "polygon"] });
  mock = await startMockServer({ networks: ["base", "polygon"] });
});
afterAll(async () => {
  await mock?.close();
  await harness?.close();
});

const doors: readonly [string, () => string][] = [
  ["the mock", () => new URL(mock.url).origin],
  ["up", () => new URL(harness.description.facilitator.url).origin],
];

const orderSchema = z.object({
  body: z.record(z.string(), z.unknown()),
  settleBody: z.record(z.string(), z.unknown()),
  header: z.object({ name: z.string(), value: z.string() }),
  payer: z.string(),
  network: z.string(),
});
const refusalSchema = z.object({ error: z.string() });
const verdictSchema = z.looseObject({
  isValid: z.boolean().optional(),
  success: z.boolean().optional(),
  situation: z.string().optional(),
  network: z.string().optional(),
  amount: z.string().optional(),
});

describe.each(doors)("%s", (_, originOf) => {
  const post = (path: string, body: unknown) => {
    const headers = { authorization: testKeys.local.apiKey };
    return requestJson(`${originOf()}${path}`, { method: "POST", headers, body });
  };
  const order = async (wanted: object) => orderSchema.parse((await post("/__payment", wanted)).body);
  const refusalOf = async (path: string, body: unknown) => {
    const { status, body: answer } = await post(path, body);
    return { status, error: refusalSchema.parse(answer).error };
  };

  /** The facilitator's answers to an order: of verify, then of settle. */
  async function pay(wanted: object) {
    const { body, settleBody } = await order(wanted);
    const verify = verdictSchema.parse((await post("/v1/verify", body)).body);
    return { verify, settle: verdictSchema.parse((await post("/v1/settle", settleBody)).body) };
  }

  test.each<[string, object, object]>([
    ["nothing said", {}, { network: "eip155:8453" }],
    [
      "another network, version and amount",
      { network: "polygon", x402Version: 1, amount: "1" },
      { network: "polygon" },
    ],
    ["a contract wallet", { payer: "smartWallet" }, {}],
    ["Permit2", { method: "permit2" }, {}],
    ["a plain ERC-20", { asset: "plain" }, {}],
    ["a token that returns nothing", { asset: "usdt", payer: "smartWallet" }, {}],
    [
      "a token with permits, to a maximum",
      { asset: "permit", scheme: "upto", max: "20000", amount: "7", units: true },
      { amount: "7" },
    ],
    ["a maximum", { scheme: "upto", max: "0.02", amount: "0.001858" }, { amount: "1858" }],
  ])("%s: it is signed so that it settles", async (_name, wanted, settled) => {
    const { verify, settle } = await pay(wanted);
    expect(verify).toMatchObject({ isValid: true });
    expect(settle).toMatchObject({ success: true, ...settled });
  });

  test.each([
    ["wrong_signer", "signature_wrong"],
    ["no_signature", "signature_wrong"],
    ["other_chain", "signature_wrong"],
    ["other_recipient", "recipient"],
    ["too_little", "value_differs"],
    ["too_much", "value_differs"],
    ["expired", "expired"],
    ["too_early", "not_valid_yet"],
  ])("broken as %s: verify says so, of both ways to pay", async (broken, situation) => {
    for (const method of ["eip3009", "permit2"]) {
      const { verify } = await pay({ broken, method });
      expect(verify.isValid).toBe(false);
      expect(verify.situation ?? "").toContain(situation);
    }
  });

  test("a token that keeps a fee of each transfer is refused by both", async () => {
    const { verify, settle } = await pay({ asset: "fee" });
    expect([verify, settle]).toMatchObject([
      { isValid: false, invalidMessage: expect.stringContaining("it keeps a fee of each transfer") },
      { success: false, errorMessage: expect.stringContaining("it keeps a fee of each transfer") },
    ]);
  });

  test("a stock shop takes the payment that was ordered for its challenge", async () => {
    const { usdc, caip2 } = networks.base;
    const { address: asset, name, version } = usdc;
    const payTo = runningChain(harness, "base").facilitatorContract;
    const price = { asset, amount: "12345", extra: { name, version } };
    const access = { url: `${originOf()}/v1`, apiKey: testKeys.local.apiKey };
    const shop = await startMerchant(access, { "/report": { network: caip2, payTo, price } });
    onTestFinished(() => shop.close());
    const url = `${shop.origin}/report`;
    const challenge = (await fetch(url)).headers.get("PAYMENT-REQUIRED");
    const { header } = await order({ challenge });
    const bought = await fetch(url, { headers: { [header.name]: header.value } });
    expect([bought.status, await bought.json()]).toEqual([200, goods]);
  });

  test("any account pays, by its private key", async () => {
    const key = generatePrivateKey();
    await runningChain(harness, "base").fund(privateKeyToAddress(key), 1_000_000n);
    const { payer, header } = await order({ payer: key, x402Version: 1 });
    expect(payer.toLowerCase()).toBe(privateKeyToAddress(key).toLowerCase());
    expect(header.name).toBe("X-PAYMENT");
    expect(JSON.parse(Buffer.from(header.value, "base64").toString())).toMatchObject({ scheme: "exact" });
  });

  test("what cannot be ordered is refused in words, with what was probably meant", async () => {
    const asked = await Promise.all([
      refusalOf("/__payment", { amout: "1" }),
      refusalOf("/__payment", { network: "bsae" }),
      refusalOf("/__payment", { payer: "fundet" }),
      refusalOf("/__payment", { scheme: "upto", method: "eip3009" }),
      refusalOf("/__payment", { amount: "-5" }),
      refusalOf("/__payment", { amount: "0", broken: "too_little" }),
      refusalOf("/__payment", { scheme: "upto", max: `${maxUint256}`, units: true, broken: "too_much" }),
    ]);
    expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 400));
    expect(asked.map(({ error }) => error)).toEqual([
      'The body: there is no "amout" here; did you mean "amount"?',
      'There is no network "bsae" here; did you mean base? There is base, polygon',
      `The payer is neither a test payer (${Object.keys(testPayers).join(", ")}) nor a private key`,
      "Scheme upto is paid by permit2, not by eip3009",
      "amount: is no amount in whole tokens, such as 0.01",
      "A payment of 0 cannot be too_little",
      `A payment of ${maxUint256} cannot be too_much`,
    ]);
  });

  test("the OpenAPI document has the routes of tests, each with an id of its own", async () => {
    const { body } = await requestJson(`${originOf()}/openapi.json`);
    const { paths } = z
      .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
      .parse(body);
    expect(paths["/__payment"]?.post).toMatchObject({ operationId: "signPayment" });
    const ids = Object.values(paths).flatMap((path) =>
      Object.values(path).map(
        (operation) => z.object({ operationId: z.string() }).parse(operation).operationId,
      ),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });
});

/** The doors at which a payment is signed, with what each signs: the amount in the smallest unit, and the version. */
describe("every door signs the same", () => {
  const signedSchema = z.object({
    x402Version: z.number(),
    paymentRequirements: z.looseObject({ amount: z.string() }),
  });
  const orderAt = (url: string) => async (terms: object) => {
    const { origin } = new URL(url);
    const { body } = await requestJson(`${origin}/__payment`, { method: "POST", body: terms });
    return membersOf(body).settleBody ?? Promise.reject(new Error(refusalSchema.parse(body).error));
  };
  const signers: readonly [string, (terms: object) => Promise<unknown>, boolean][] = [
    ["fixtures.payment", (terms) => createFixtureEngine({ networks: ["base"] }).payment(terms), false],
    [
      "harness.sign",
      async (terms) => (await signPayment(harness.description, { network: "base", ...terms })).settleRequest,
      false,
    ],
    ["the mock's /__payment", (terms) => orderAt(mock.url)(terms), true],
    ["the harness's /__payment", (terms) => orderAt(harness.description.facilitator.url)(terms), true],
  ];

  test.each(signers)("%s", async (_, sign, isJson) => {
    const signed = async (terms: object) => signedSchema.parse(await sign(terms));
    const smallest = isJson ? { amount: "7", units: true } : { amount: 7n };
    const asked = [{}, { amount: "0.5" }, { amount: "$1" }, smallest];
    const bodies = await Promise.all(asked.map(signed));
    expect(bodies.map(({ x402Version }) => x402Version)).toEqual([2, 2, 2, 2]);
    const amounts = bodies.map(({ paymentRequirements: { amount } }) => amount);
    expect(amounts).toEqual(["10000", "500000", "1000000", "7"]);
    const refusals = await Promise.all(
      [
        { method: "permit2", x402Version: 1 },
        { scheme: "upto", method: "eip3009" },
        { max: "0.01" },
        { amount: "0.0000001" },
        { network: "bsae" },
      ].map((terms) => sign(terms).catch(({ message }: Error) => message.replace("base, polygon", "base"))),
    );
    expect(refusals).toEqual([
      "Version 1 of x402 has no payments by permit2",
      "Scheme upto is paid by permit2, not by eip3009",
      "Only scheme upto has a maximum",
      "0.0000001 has too many decimals: USDC has 6",
      expect.stringContaining("base"),
    ]);
  });

  test("POST /harness/pay", async () => {
    const post = async (body: object) => {
      const { origin } = new URL(harness.description.facilitator.url);
      return (await requestJson(`${origin}/harness/pay`, { method: "POST", body })).body;
    };
    expect(await post({ network: "base", method: "permit2", x402Version: 1 })).toMatchObject({
      error: "Version 1 of x402 has no payments by permit2",
    });
    expect(await post({ network: "base", max: "0.02", amount: "0.000007" })).toMatchObject({
      settle: { success: true, amount: "7" },
    });
  });
});

test("a control request with an unknown member does nothing, and says which was meant", async () => {
  const post = async (origin: string, path: string, body: object) =>
    refusalSchema.parse((await requestJson(`${origin}${path}`, { method: "POST", body })).body).error;
  const { origin } = new URL(mock.url);
  const up = new URL(harness.description.facilitator.url).origin;
  expect([
    await post(origin, "/__scenario", { name: "settle.success", time: 2 }),
    await post(origin, "/__advance-time", { second: 2 }),
    await post(up, "/harness/fund", { network: "base", to: testPayers.empty.address, amout: "1" }),
    await post(up, "/harness/advance-time", { networks: "base", seconds: 1 }),
    await post(up, "/harness/reset", { network: "base" }),
  ]).toMatchInlineSnapshot(`
    [
      "The body: there is no "time" here; did you mean "times"?",
      "seconds: must be a number; The body: there is no "second" here; did you mean "seconds"?",
      "amount: must be a string; The body: there is no "amout" here; did you mean "amount"?",
      "network: must be a string; The body: there is no "networks" here; did you mean "network"?",
      "The body: there is no "network" here; it takes nothing",
    ]
  `);
});
