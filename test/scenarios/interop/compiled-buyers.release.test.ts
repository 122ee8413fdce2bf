import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { defaultContracts } from "../../../src/fixtures/index.ts";
import { type MockServer, startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { repository } from "../../support/cli.ts";
import { buildExample, type Example } from "../../support/examples/build-example.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods, startMerchant } from "../../support/merchant.ts";
import { startV1Merchant } from "../../support/v1-merchant.ts";

/*
 * examples/go and examples/rust against shops of both versions, whose facilitator is the mock. Where the language or its
 * libraries are not on this machine they cannot be run, which is printed.
 */

const authorizationType =
  "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)";

const { caip2, usdc } = networks.base;

let mock: MockServer;
let shops: Readonly<Record<1 | 2, LoopbackServer>>;
beforeAll(async () => {
  mock = await startMockServer({ networks: ["base"] });
  const access = { url: mock.url, apiKey: testKeys.local.apiKey };
  const payTo = defaultContracts.mainnet;
  const extra = { name: usdc.name, version: usdc.version };
  const price = { asset: usdc.address, amount: "10000", extra };
  const offer = { network: "base", payTo, asset: usdc.address, maxAmountRequired: "10000", extra };
  shops = {
    1: await startV1Merchant(access, { "/report": offer }),
    2: await startMerchant(access, { "/report": { network: caip2, payTo, price } }),
  };
});
beforeEach(() => mock.reset());
afterAll(async () => {
  for (const shop of Object.values(shops ?? {})) await shop.close();
  await mock?.close();
});

describe.each(["go", "rust"] as const)("the example in %s", (language) => {
  let example: Example | undefined;
  beforeAll(async () => {
    example = await buildExample(language);
  }, 300_000);
  afterAll(async () => {
    await example?.[Symbol.asyncDispose]();
  });

  type Purchase = { payer?: "funded" | "empty"; maxAmount?: string };
  const buy = (version: 1 | 2, { payer = "funded", maxAmount = "10000" }: Purchase = {}) =>
    example?.run({
      X402_URL: `${shops[version].origin}/report`,
      X402_PRIVATE_KEY: testPayers[payer].privateKey,
      X402_NETWORK: "base",
      X402_CAIP2: caip2,
      X402_ASSET: usdc.address,
      X402_MAX_AMOUNT: maxAmount,
    });

  test("signs what the protocol says", async () => {
    const file = { go: "authorization.go", rust: "src/authorization.rs" }[language];
    const source = await readFile(join(repository, "examples", language, file), "utf8");
    expect(source).toContain(authorizationType);
    await example?.test();
  }, 300_000);

  test.for([1, 2] as const)("buys at a shop of version %s, with one authorization", async (version) => {
    const bought = await buy(version);
    if (bought === undefined) return;
    expect(bought).toEqual({ code: 0, stdout: `${JSON.stringify(goods)}\n`, stderr: "" });
    expect(mock.calls.filter(({ operation }) => operation === "settle")).toMatchObject([
      { answer: { status: 200, body: { success: true } } },
    ]);
  });

  test("sends the same payment again when the shop could not tell, and pays once", async () => {
    if (example === undefined) return;
    mock.scenario("settle.v2.connection.answer_lost");
    expect(await buy(2)).toMatchObject({ code: 0, stdout: `${JSON.stringify(goods)}\n` });
    const settles = mock.calls.filter(({ operation }) => operation === "settle");
    expect(settles.length).toBeGreaterThan(1);
    const nonces = settles.map(({ payment }) => payment?.payment.nonce);
    expect(new Set(nonces).size).toBe(1);
  });

  test("says what the shop answers a payer without money, and pays nothing above the limit", async () => {
    if (example === undefined) return;
    const refused = await buy(1, { payer: "empty" });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused?.stderr).toMatch(/^the shop answers 402: .*insufficient_funds/);
    mock.reset();
    for (const version of [1, 2] as const) {
      expect(await buy(version, { maxAmount: "9999" })).toEqual({
        code: 1,
        stdout: "",
        stderr: "the shop asks for nothing that may be paid\n",
      });
    }
    expect(mock.calls).toEqual([]);
  });
});
