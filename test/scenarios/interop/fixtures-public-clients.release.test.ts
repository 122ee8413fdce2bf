import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { ExactEvmSchemeV1 } from "@x402/evm/v1";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { setupServer } from "msw/node";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  createFixtures,
  defaultContracts,
  findScenario,
  type RowName,
  type Scenario,
  scenarios,
  testKeys,
  testPayers,
} from "../../../src/fixtures/index.ts";
import { networks } from "../../../src/protocol/networks.ts";
import type { X402Version } from "../../../src/protocol/requests.ts";
import { createBuyer, payAgain } from "../../support/buyer.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods, startMerchant } from "../../support/merchant.ts";
import { startV1Merchant } from "../../support/v1-merchant.ts";

/*
 * What a buyer sees who pays with the public fetch client from a server whose facilitator is the fixtures: for each
 * way in which a verify or a settle can end. In v2 the server is the public express package, in v1 one that does as the
 * v1 servers did.
 */

const baseUrl = "https://facilitator.example";
const fixtures = createFixtures({ baseUrl, networks: ["base"] });
const mockedNetwork = setupServer(...fixtures.handlers);
const merchants: Partial<Record<X402Version, LoopbackServer>> = {};

beforeAll(async () => {
  mockedNetwork.listen({ onUnhandledFrame: "bypass" });
  const access = { url: `${baseUrl}/v1`, apiKey: testKeys.local.apiKey };
  const { caip2, usdc } = networks.base;
  const payTo = defaultContracts.mainnet;
  merchants[2] = await startMerchant(access, { "/report": { network: caip2, payTo, price: "$0.01" } });
  const extra = { name: usdc.name, version: usdc.version };
  merchants[1] = await startV1Merchant(access, {
    "/report": { network: "base", payTo, asset: usdc.address, maxAmountRequired: "10000", extra },
  });
  // The server of version 2 asks for /supported before it sells.
  expect((await fetch(reportOf(2))).status).toBe(402);
});
beforeEach(() => fixtures.reset());
afterAll(async () => {
  await Promise.all(Object.values(merchants).map((merchant) => merchant.close()));
  mockedNetwork.close();
  fixtures.dispose();
});

const reportOf = (x402Version: X402Version) => `${merchants[x402Version]?.origin}/report`;

const groupOf = (name: string) => name.slice(0, name.lastIndexOf("."));

/** The first row of each group: every reason, and every kind of end without a verdict. Connections end in several ways. */
function rowsOf(operation: Scenario["operation"], x402Version: X402Version): readonly RowName[] {
  const rows = scenarios.filter(
    (row) =>
      row.operation === operation &&
      row.x402Version === x402Version &&
      // Without a time-out of their own the public servers wait for ever.
      row.situation !== "connection.never_answers",
  );
  const isFirst = (name: string, index: number) =>
    rows.findIndex((row) => groupOf(row.name) === groupOf(name)) === index;
  return rows
    .filter(({ name }, index) => name.includes(".connection.") || isFirst(name, index))
    .map(({ name }) => name);
}

const account = privateKeyToAccount(testPayers.funded.privateKey);

/** The public client, as its documentation sets one up. */
const client = new x402Client()
  .register("eip155:*", new ExactEvmScheme(account))
  .registerV1("base", new ExactEvmSchemeV1(account));

const requiredSchema = z.object({ error: z.string() });

/** Buys once, and says in a line what the buyer gets: status, headers, body; and what the facilitator was asked. */
async function buy(x402Version: X402Version): Promise<string> {
  const response = await wrapFetchWithPayment(fetch, client)(reportOf(x402Version));
  const { status, headers } = response;
  const required = headers.get("PAYMENT-REQUIRED");
  const receipt = headers.get("PAYMENT-RESPONSE") ?? headers.get("X-PAYMENT-RESPONSE");
  const parts = [
    `${status} ${readable(await response.text())}`,
    required &&
      `PAYMENT-REQUIRED: ${requiredSchema.parse(JSON.parse(Buffer.from(required, "base64").toString())).error}`,
    receipt && `receipt: ${describeReceipt(receipt)}`,
    fixtures.calls.map(({ operation }) => operation ?? "other").join(", "),
  ];
  return parts.filter((part) => part !== null && part !== undefined).join(" | ");
}

/** A body without what is always the same, and without the words of the engine for JSON that is none. */
function readable(text: string): string {
  return text
    .replace(/"accepts":\[.*\]/, '"accepts":[…]')
    .replace(/SyntaxError.*(?=","accepts)/, "SyntaxError");
}

function describeReceipt(header: string): string {
  const { success, errorReason, transaction } = decodePaymentResponseHeader(header);
  return success ? `success ${transaction}` : `${errorReason}${transaction && ` ${transaction}`}`;
}

async function tableOf(names: readonly RowName[], act: (name: RowName) => Promise<string>): Promise<string> {
  const lines = [];
  for (const name of names) {
    fixtures.reset();
    fixtures.scenario(name).delay(1);
    lines.push(`${name.includes(".connection.") ? name : groupOf(name)} | ${await act(name)}`);
  }
  return lines.join("\n").replace(/0x[0-9a-f]{64}/g, "0x…");
}

/**
 * The rows of an operation that break the rule, by which the buyer of a refused payment gets 402 and the reason. Connections and
 * pending settlements are always shown.
 */
async function unusualOf(operation: Scenario["operation"], x402Version: X402Version): Promise<string> {
  const table = await tableOf(rowsOf(operation, x402Version), () => buy(x402Version));
  const lines = table.replaceAll(/(unexpected_verify_error): [^|]*(?= \|)/g, "$1").split("\n");
  expect(lines.length).toBeGreaterThan(20);
  const [asked, header] =
    operation === "verify" ? ["verify", "PAYMENT-REQUIRED"] : ["verify, settle", "receipt"];
  const usual = (name: string, reason: string) =>
    x402Version === 1
      ? `${name} | 402 {"x402Version":1,"error":"${reason}","accepts":[…]} | ${asked}`
      : `${name} | 402 {} | ${header}: ${reason} | ${asked}`;
  const isUnusual = (line: string) => {
    const [name = ""] = line.split(" | ");
    if (name.includes(".connection.") || name.endsWith(".pending")) return true;
    const reasons = [name.slice(name.lastIndexOf(".") + 1), `unexpected_${operation}_error`];
    return !reasons.some((reason) => line === usual(name, reason));
  };
  return lines.filter(isUnusual).join("\n");
}

describe("who buys from a server of", () => {
  test("v2, verify", async () => {
    expect(await unusualOf("verify", 2)).toMatchInlineSnapshot(`
      "verify.v2.success | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      verify.v2.permit2_allowance_required | 412 {} | PAYMENT-REQUIRED: permit2_allowance_required | verify
      verify.v2.slow | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      verify.v2.connection.reset_before | 402 {} | PAYMENT-REQUIRED: fetch failed | verify
      verify.v2.connection.answer_lost | 402 {} | PAYMENT-REQUIRED: fetch failed | verify
      verify.v2.connection.internal_error | 402 {} | PAYMENT-REQUIRED: Facilitator verify failed (500): <html><h1>500 Internal Server Error</h1></html> | verify
      verify.v2.connection.bad_gateway | 402 {} | PAYMENT-REQUIRED: Facilitator verify failed (502): <html><h1>502 Bad Gateway</h1></html> | verify
      verify.v2.connection.gateway_timeout | 402 {} | PAYMENT-REQUIRED: Facilitator verify failed (504): <html><h1>504 Gateway Time-out</h1></html> | verify
      verify.v2.connection.cut_off | 502 {"error":"Facilitator verify returned invalid JSON: {\\"isValid\\":true,"} | verify
      verify.v2.connection.not_json | 502 {"error":"Facilitator verify returned invalid JSON: <html><h1>Please log in</h1></html>"} | verify"
    `);
  });

  test("v2, settle", async () => {
    expect(await unusualOf("settle", 2)).toMatchInlineSnapshot(`
      "settle.v2.success | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      settle.v2.pending | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle, settle
      settle.v2.slow | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      settle.v2.connection.reset_before | 402 {} | receipt: fetch failed | verify, settle
      settle.v2.connection.answer_lost | 402 {} | receipt: fetch failed | verify, settle
      settle.v2.connection.internal_error | 402 {} | receipt: Facilitator settle failed (500): <html><h1>500 Internal Server Error</h1></html> | verify, settle
      settle.v2.connection.bad_gateway | 402 {} | receipt: Facilitator settle failed (502): <html><h1>502 Bad Gateway</h1></html> | verify, settle
      settle.v2.connection.gateway_timeout | 402 {} | receipt: Facilitator settle failed (504): <html><h1>504 Gateway Time-out</h1></html> | verify, settle
      settle.v2.connection.cut_off | 502 {"error":"Facilitator settle returned invalid JSON: {\\"success\\":true,"} | verify, settle
      settle.v2.connection.not_json | 502 {"error":"Facilitator settle returned invalid JSON: <html><h1>Please log in</h1></html>"} | verify, settle"
    `);
  });

  test("v1, verify", async () => {
    expect(await unusualOf("verify", 1)).toMatchInlineSnapshot(`
      "verify.success | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      verify.slow | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      verify.connection.reset_before | 402 {"x402Version":1,"error":"TypeError: fetch failed","accepts":[…]} | verify
      verify.connection.answer_lost | 402 {"x402Version":1,"error":"TypeError: fetch failed","accepts":[…]} | verify
      verify.connection.internal_error | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify
      verify.connection.bad_gateway | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify
      verify.connection.gateway_timeout | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify
      verify.connection.cut_off | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify
      verify.connection.not_json | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify"
    `);
  });

  test("v1, settle", async () => {
    expect(await unusualOf("settle", 1)).toMatchInlineSnapshot(`
      "settle.success | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      settle.pending | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
      settle.slow | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      settle.connection.reset_before | 402 {"x402Version":1,"error":"TypeError: fetch failed","accepts":[…]} | verify, settle
      settle.connection.answer_lost | 402 {"x402Version":1,"error":"TypeError: fetch failed","accepts":[…]} | verify, settle
      settle.connection.internal_error | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify, settle
      settle.connection.bad_gateway | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify, settle
      settle.connection.gateway_timeout | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify, settle
      settle.connection.cut_off | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify, settle
      settle.connection.not_json | 402 {"x402Version":1,"error":"SyntaxError","accepts":[…]} | verify, settle"
    `);
  });
});

test.each([1, 2] as const)(
  "who pays again when the answer was lost gets the goods, for one payment: v%i",
  async (x402Version) => {
    fixtures.scenario(
      x402Version === 1 ? "settle.connection.answer_lost" : "settle.v2.connection.answer_lost",
    );
    const { status, payment } = await createBuyer(account).buy(reportOf(x402Version));
    expect(status).toBe(402);
    expect(await payAgain(reportOf(x402Version), payment)).toMatchObject({
      status: 200,
      body: goods,
      receipt: { success: true },
    });
    expect(await payAgain(reportOf(x402Version), payment)).toMatchObject({ status: 402 });
  },
);

describe("who calls HTTPFacilitatorClient", () => {
  const headers = { Authorization: testKeys.local.apiKey };
  const facilitator = new HTTPFacilitatorClient({
    url: `${baseUrl}/v1`,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  });

  /** Asks with the payment of the scenario, and says in a line what is returned or thrown. */
  async function ask(name: RowName): Promise<string> {
    const scenario = findScenario(name);
    const { request } = await scenario.plan(fixtures.environment);
    const { paymentPayload, paymentRequirements } = JSON.parse(request.body ?? "");
    try {
      const answer = await facilitator[scenario.operation](paymentPayload, paymentRequirements);
      return `returns ${JSON.stringify(answer)}`;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const status: unknown = Reflect.get(error, "statusCode");
      return `throws ${error.name}${status === undefined ? "" : ` ${status}`}: ${error.message}`;
    }
  }

  test("is returned verdicts, and thrown everything else", async () => {
    expect(
      await tableOf(
        [
          "verify.success",
          "verify.insufficient_funds",
          "verify.unauthorized",
          "verify.unavailable",
          "verify.connection.reset_before",
          "verify.connection.cut_off",
          "verify.v2.success",
          "verify.v2.insufficient_funds",
          "verify.v2.too_many_requests",
          "settle.success",
          "settle.insufficient_funds",
          "settle.unavailable",
          "settle.pending",
          "settle.connection.answer_lost",
          "settle.connection.bad_gateway",
          "settle.connection.not_json",
          "settle.v2.success",
          "settle.v2.insufficient_funds",
          "settle.v2.pending",
          "settle.v2.connection.answer_lost",
        ].map((name) => findScenario(name).name),
        ask,
      ),
    ).toMatchInlineSnapshot(`
      "verify.success | returns {"isValid":true,"payer":"0x652026B65e32ffC7487F89D68D208977789a04d3"}
      verify.insufficient_funds | returns {"isValid":false,"invalidReason":"insufficient_funds","invalidMessage":"The payer holds 0 USDC (0); 0.01 USDC (10000) is needed. Give the payer more of the token, or fix the price if it is off by decimals: 1 USDC is 1000000","payer":"0xF44DC5355909ac8b48873E7995dEfC56D1620a52"}
      verify.unauthorized | throws VerifyError 401: unexpected_verify_error: There is no Authorization header; send the API key in it, as it is or after the word Bearer
      verify.unavailable | throws VerifyError 503: unexpected_verify_error: No RPC endpoint of base answers
      verify.connection.reset_before | throws TypeError: fetch failed
      verify.connection.cut_off | throws FacilitatorResponseError: Facilitator verify returned invalid JSON: {"isValid":true,
      verify.v2.success | returns {"isValid":true,"payer":"0x652026B65e32ffC7487F89D68D208977789a04d3"}
      verify.v2.insufficient_funds | returns {"isValid":false,"invalidReason":"insufficient_funds","invalidMessage":"The payer holds 0 USDC (0); 0.01 USDC (10000) is needed. Give the payer more of the token, or fix the price if it is off by decimals: 1 USDC is 1000000","payer":"0xF44DC5355909ac8b48873E7995dEfC56D1620a52"}
      verify.v2.too_many_requests | throws VerifyError 429: unexpected_verify_error: This API key sends too many requests; try again in 1 s
      settle.success | returns {"success":true,"payer":"0x652026B65e32ffC7487F89D68D208977789a04d3","transaction":"0x…","network":"base"}
      settle.insufficient_funds | returns {"success":false,"errorReason":"insufficient_funds","errorMessage":"The payer holds 0 USDC (0); 0.01 USDC (10000) is needed. Give the payer more of the token, or fix the price if it is off by decimals: 1 USDC is 1000000","payer":"0xF44DC5355909ac8b48873E7995dEfC56D1620a52","transaction":"","network":"base"}
      settle.unavailable | throws SettleError 503: unexpected_settle_error: No RPC endpoint of base answers
      settle.pending | throws SettleError 503: unexpected_settle_error: Transaction 0x… is sent and not decided yet; ask again with the same payment, or at the address in Location
      settle.connection.answer_lost | throws TypeError: fetch failed
      settle.connection.bad_gateway | throws Error: Facilitator settle failed (502): <html><h1>502 Bad Gateway</h1></html>
      settle.connection.not_json | throws FacilitatorResponseError: Facilitator settle returned invalid JSON: <html><h1>Please log in</h1></html>
      settle.v2.success | returns {"success":true,"payer":"0x652026B65e32ffC7487F89D68D208977789a04d3","transaction":"0x…","network":"eip155:8453"}
      settle.v2.insufficient_funds | returns {"success":false,"errorReason":"insufficient_funds","errorMessage":"The payer holds 0 USDC (0); 0.01 USDC (10000) is needed. Give the payer more of the token, or fix the price if it is off by decimals: 1 USDC is 1000000","payer":"0xF44DC5355909ac8b48873E7995dEfC56D1620a52","transaction":"","network":"eip155:8453"}
      settle.v2.pending | throws SettleError 503: settlement_pending: Transaction 0x… is sent and not decided yet; ask again with the same payment, or at the address in Location
      settle.v2.connection.answer_lost | throws TypeError: fetch failed"
    `);
  });
});
