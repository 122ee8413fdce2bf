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
  type Scenario,
  type ScenarioName,
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
function rowsOf(operation: Scenario["operation"], x402Version: X402Version): readonly ScenarioName[] {
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

async function tableOf(
  names: readonly ScenarioName[],
  act: (name: ScenarioName) => Promise<string>,
): Promise<string> {
  const lines = [];
  for (const name of names) {
    fixtures.reset();
    fixtures.scenario(name).delay(1);
    lines.push(`${name.includes(".connection.") ? name : groupOf(name)} | ${await act(name)}`);
  }
  return lines.join("\n").replace(/0x[0-9a-f]{64}/g, "0x…");
}

describe("who buys from a server of", () => {
  test("v2, verify", async () => {
    expect(await tableOf(rowsOf("verify", 2), () => buy(2))).toMatchInlineSnapshot(`
      "verify.v2.success | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      verify.v2.invalid_payload | 402 {} | PAYMENT-REQUIRED: invalid_payload | verify
      verify.v2.unsupported_scheme | 402 {} | PAYMENT-REQUIRED: unsupported_scheme | verify
      verify.v2.invalid_network | 402 {} | PAYMENT-REQUIRED: invalid_network | verify
      verify.v2.invalid_payment_requirements | 402 {} | PAYMENT-REQUIRED: invalid_payment_requirements | verify
      verify.v2.invalid_exact_evm_payload_recipient_mismatch | 402 {} | PAYMENT-REQUIRED: invalid_exact_evm_payload_recipient_mismatch | verify
      verify.v2.invalid_exact_evm_payload_authorization_value_mismatch | 402 {} | PAYMENT-REQUIRED: invalid_exact_evm_payload_authorization_value_mismatch | verify
      verify.v2.invalid_exact_evm_payload_authorization_valid_after | 402 {} | PAYMENT-REQUIRED: invalid_exact_evm_payload_authorization_valid_after | verify
      verify.v2.invalid_exact_evm_payload_authorization_valid_before | 402 {} | PAYMENT-REQUIRED: invalid_exact_evm_payload_authorization_valid_before | verify
      verify.v2.invalid_exact_evm_payload_signature | 402 {} | PAYMENT-REQUIRED: invalid_exact_evm_payload_signature | verify
      verify.v2.invalid_exact_evm_payload_undeployed_smart_wallet | 402 {} | PAYMENT-REQUIRED: invalid_exact_evm_payload_undeployed_smart_wallet | verify
      verify.v2.insufficient_funds | 402 {} | PAYMENT-REQUIRED: insufficient_funds | verify
      verify.v2.invalid_transaction_state | 402 {} | PAYMENT-REQUIRED: invalid_transaction_state | verify
      verify.v2.invalid_permit2_spender | 402 {} | PAYMENT-REQUIRED: invalid_permit2_spender | verify
      verify.v2.invalid_permit2_recipient_mismatch | 402 {} | PAYMENT-REQUIRED: invalid_permit2_recipient_mismatch | verify
      verify.v2.permit2_deadline_expired | 402 {} | PAYMENT-REQUIRED: permit2_deadline_expired | verify
      verify.v2.permit2_not_yet_valid | 402 {} | PAYMENT-REQUIRED: permit2_not_yet_valid | verify
      verify.v2.permit2_amount_mismatch | 402 {} | PAYMENT-REQUIRED: permit2_amount_mismatch | verify
      verify.v2.permit2_token_mismatch | 402 {} | PAYMENT-REQUIRED: permit2_token_mismatch | verify
      verify.v2.asset_not_deployed_contract | 402 {} | PAYMENT-REQUIRED: asset_not_deployed_contract | verify
      verify.v2.invalid_permit2_signature | 402 {} | PAYMENT-REQUIRED: invalid_permit2_signature | verify
      verify.v2.permit2_proxy_not_deployed | 402 {} | PAYMENT-REQUIRED: permit2_proxy_not_deployed | verify
      verify.v2.permit2_insufficient_balance | 402 {} | PAYMENT-REQUIRED: permit2_insufficient_balance | verify
      verify.v2.permit2_allowance_required | 412 {} | PAYMENT-REQUIRED: permit2_allowance_required | verify
      verify.v2.invalid_eip2612_extension_format | 402 {} | PAYMENT-REQUIRED: invalid_eip2612_extension_format | verify
      verify.v2.eip2612_from_mismatch | 402 {} | PAYMENT-REQUIRED: eip2612_from_mismatch | verify
      verify.v2.eip2612_asset_mismatch | 402 {} | PAYMENT-REQUIRED: eip2612_asset_mismatch | verify
      verify.v2.eip2612_spender_not_permit2 | 402 {} | PAYMENT-REQUIRED: eip2612_spender_not_permit2 | verify
      verify.v2.permit2_2612_amount_mismatch | 402 {} | PAYMENT-REQUIRED: permit2_2612_amount_mismatch | verify
      verify.v2.eip2612_deadline_expired | 402 {} | PAYMENT-REQUIRED: eip2612_deadline_expired | verify
      verify.v2.invalid_erc20_approval_extension_format | 402 {} | PAYMENT-REQUIRED: invalid_erc20_approval_extension_format | verify
      verify.v2.erc20_approval_from_mismatch | 402 {} | PAYMENT-REQUIRED: erc20_approval_from_mismatch | verify
      verify.v2.erc20_approval_asset_mismatch | 402 {} | PAYMENT-REQUIRED: erc20_approval_asset_mismatch | verify
      verify.v2.erc20_approval_spender_not_permit2 | 402 {} | PAYMENT-REQUIRED: erc20_approval_spender_not_permit2 | verify
      verify.v2.erc20_approval_tx_parse_failed | 402 {} | PAYMENT-REQUIRED: erc20_approval_tx_parse_failed | verify
      verify.v2.erc20_approval_tx_wrong_target | 402 {} | PAYMENT-REQUIRED: erc20_approval_tx_wrong_target | verify
      verify.v2.erc20_approval_tx_wrong_selector | 402 {} | PAYMENT-REQUIRED: erc20_approval_tx_wrong_selector | verify
      verify.v2.erc20_approval_tx_wrong_spender | 402 {} | PAYMENT-REQUIRED: erc20_approval_tx_wrong_spender | verify
      verify.v2.erc20_approval_tx_invalid_calldata | 402 {} | PAYMENT-REQUIRED: erc20_approval_tx_invalid_calldata | verify
      verify.v2.erc20_approval_tx_signer_mismatch | 402 {} | PAYMENT-REQUIRED: erc20_approval_tx_signer_mismatch | verify
      verify.v2.erc20_approval_tx_invalid_signature | 402 {} | PAYMENT-REQUIRED: erc20_approval_tx_invalid_signature | verify
      verify.v2.erc20_approval_broadcast_failed | 402 {} | PAYMENT-REQUIRED: erc20_approval_broadcast_failed | verify
      verify.v2.permit2_simulation_failed | 402 {} | PAYMENT-REQUIRED: permit2_simulation_failed | verify
      verify.v2.invalid_upto_evm_scheme | 402 {} | PAYMENT-REQUIRED: invalid_upto_evm_scheme | verify
      verify.v2.upto_facilitator_mismatch | 402 {} | PAYMENT-REQUIRED: upto_facilitator_mismatch | verify
      verify.v2.bad_request | 402 {} | PAYMENT-REQUIRED: unexpected_verify_error: The body is not JSON from line 1, column 2 on | verify
      verify.v2.unauthorized | 402 {} | PAYMENT-REQUIRED: unexpected_verify_error: There is no Authorization header; send the API key in it, as it is or after the word Bearer | verify
      verify.v2.forbidden | 402 {} | PAYMENT-REQUIRED: unexpected_verify_error: This API key lacks the scope "verify"; use a key that has it | verify
      verify.v2.body_too_large | 402 {} | PAYMENT-REQUIRED: unexpected_verify_error: The body may have at most 32 KiB | verify
      verify.v2.unsupported_media_type | 402 {} | PAYMENT-REQUIRED: unexpected_verify_error: Send the body with content-type: application/json | verify
      verify.v2.payment_identifier_reused | 402 {} | PAYMENT-REQUIRED: unexpected_verify_error: This payment identifier was another payment's before; nothing was done. Send that payment again, or use a new identifier for a new purchase | verify
      verify.v2.too_many_requests | 402 {} | PAYMENT-REQUIRED: unexpected_verify_error: This API key sends too many requests; try again in 1 s | verify
      verify.v2.unavailable | 402 {} | PAYMENT-REQUIRED: unexpected_verify_error: No RPC endpoint of base answers | verify
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
    expect(await tableOf(rowsOf("settle", 2), () => buy(2))).toMatchInlineSnapshot(`
      "settle.v2.success | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      settle.v2.invalid_payload | 402 {} | receipt: invalid_payload | verify, settle
      settle.v2.unsupported_scheme | 402 {} | receipt: unsupported_scheme | verify, settle
      settle.v2.invalid_network | 402 {} | receipt: invalid_network | verify, settle
      settle.v2.invalid_payment_requirements | 402 {} | receipt: invalid_payment_requirements | verify, settle
      settle.v2.invalid_exact_evm_payload_recipient_mismatch | 402 {} | receipt: invalid_exact_evm_payload_recipient_mismatch | verify, settle
      settle.v2.invalid_exact_evm_payload_authorization_value_mismatch | 402 {} | receipt: invalid_exact_evm_payload_authorization_value_mismatch | verify, settle
      settle.v2.invalid_exact_evm_payload_authorization_valid_after | 402 {} | receipt: invalid_exact_evm_payload_authorization_valid_after | verify, settle
      settle.v2.invalid_exact_evm_payload_authorization_valid_before | 402 {} | receipt: invalid_exact_evm_payload_authorization_valid_before | verify, settle
      settle.v2.invalid_exact_evm_payload_signature | 402 {} | receipt: invalid_exact_evm_payload_signature | verify, settle
      settle.v2.invalid_exact_evm_payload_undeployed_smart_wallet | 402 {} | receipt: invalid_exact_evm_payload_undeployed_smart_wallet | verify, settle
      settle.v2.insufficient_funds | 402 {} | receipt: insufficient_funds | verify, settle
      settle.v2.invalid_transaction_state | 402 {} | receipt: invalid_transaction_state | verify, settle
      settle.v2.invalid_permit2_spender | 402 {} | receipt: invalid_permit2_spender | verify, settle
      settle.v2.invalid_permit2_recipient_mismatch | 402 {} | receipt: invalid_permit2_recipient_mismatch | verify, settle
      settle.v2.permit2_deadline_expired | 402 {} | receipt: permit2_deadline_expired | verify, settle
      settle.v2.permit2_not_yet_valid | 402 {} | receipt: permit2_not_yet_valid | verify, settle
      settle.v2.permit2_amount_mismatch | 402 {} | receipt: permit2_amount_mismatch | verify, settle
      settle.v2.permit2_token_mismatch | 402 {} | receipt: permit2_token_mismatch | verify, settle
      settle.v2.asset_not_deployed_contract | 402 {} | receipt: asset_not_deployed_contract | verify, settle
      settle.v2.invalid_permit2_signature | 402 {} | receipt: invalid_permit2_signature | verify, settle
      settle.v2.permit2_proxy_not_deployed | 402 {} | receipt: permit2_proxy_not_deployed | verify, settle
      settle.v2.permit2_insufficient_balance | 402 {} | receipt: permit2_insufficient_balance | verify, settle
      settle.v2.permit2_allowance_required | 402 {} | receipt: permit2_allowance_required | verify, settle
      settle.v2.invalid_eip2612_extension_format | 402 {} | receipt: invalid_eip2612_extension_format | verify, settle
      settle.v2.eip2612_from_mismatch | 402 {} | receipt: eip2612_from_mismatch | verify, settle
      settle.v2.eip2612_asset_mismatch | 402 {} | receipt: eip2612_asset_mismatch | verify, settle
      settle.v2.eip2612_spender_not_permit2 | 402 {} | receipt: eip2612_spender_not_permit2 | verify, settle
      settle.v2.permit2_2612_amount_mismatch | 402 {} | receipt: permit2_2612_amount_mismatch | verify, settle
      settle.v2.eip2612_deadline_expired | 402 {} | receipt: eip2612_deadline_expired | verify, settle
      settle.v2.invalid_erc20_approval_extension_format | 402 {} | receipt: invalid_erc20_approval_extension_format | verify, settle
      settle.v2.erc20_approval_from_mismatch | 402 {} | receipt: erc20_approval_from_mismatch | verify, settle
      settle.v2.erc20_approval_asset_mismatch | 402 {} | receipt: erc20_approval_asset_mismatch | verify, settle
      settle.v2.erc20_approval_spender_not_permit2 | 402 {} | receipt: erc20_approval_spender_not_permit2 | verify, settle
      settle.v2.erc20_approval_tx_parse_failed | 402 {} | receipt: erc20_approval_tx_parse_failed | verify, settle
      settle.v2.erc20_approval_tx_wrong_target | 402 {} | receipt: erc20_approval_tx_wrong_target | verify, settle
      settle.v2.erc20_approval_tx_wrong_selector | 402 {} | receipt: erc20_approval_tx_wrong_selector | verify, settle
      settle.v2.erc20_approval_tx_wrong_spender | 402 {} | receipt: erc20_approval_tx_wrong_spender | verify, settle
      settle.v2.erc20_approval_tx_invalid_calldata | 402 {} | receipt: erc20_approval_tx_invalid_calldata | verify, settle
      settle.v2.erc20_approval_tx_signer_mismatch | 402 {} | receipt: erc20_approval_tx_signer_mismatch | verify, settle
      settle.v2.erc20_approval_tx_invalid_signature | 402 {} | receipt: erc20_approval_tx_invalid_signature | verify, settle
      settle.v2.erc20_approval_broadcast_failed | 402 {} | receipt: erc20_approval_broadcast_failed | verify, settle
      settle.v2.permit2_simulation_failed | 402 {} | receipt: permit2_simulation_failed | verify, settle
      settle.v2.invalid_upto_evm_scheme | 402 {} | receipt: invalid_upto_evm_scheme | verify, settle
      settle.v2.upto_facilitator_mismatch | 402 {} | receipt: upto_facilitator_mismatch | verify, settle
      settle.v2.invalid_upto_evm_payload_settlement_exceeds_amount | 402 {} | receipt: invalid_upto_evm_payload_settlement_exceeds_amount | verify, settle
      settle.v2.bad_request | 402 {} | receipt: unexpected_settle_error | verify, settle
      settle.v2.unauthorized | 402 {} | receipt: unexpected_settle_error | verify, settle
      settle.v2.forbidden | 402 {} | receipt: unexpected_settle_error | verify, settle
      settle.v2.body_too_large | 402 {} | receipt: unexpected_settle_error | verify, settle
      settle.v2.unsupported_media_type | 402 {} | receipt: unexpected_settle_error | verify, settle
      settle.v2.idempotency_key_reused | 402 {} | receipt: unexpected_settle_error | verify, settle
      settle.v2.payment_identifier_reused | 402 {} | receipt: unexpected_settle_error | verify, settle
      settle.v2.too_many_requests | 402 {} | receipt: unexpected_settle_error | verify, settle
      settle.v2.gas_budget | 402 {} | receipt: unexpected_settle_error | verify, settle
      settle.v2.unavailable | 402 {} | receipt: unexpected_settle_error | verify, settle
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
    expect(await tableOf(rowsOf("verify", 1), () => buy(1))).toMatchInlineSnapshot(`
      "verify.success | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      verify.invalid_payload | 402 {"x402Version":1,"error":"invalid_payload","accepts":[…]} | verify
      verify.invalid_x402_version | 402 {"x402Version":1,"error":"invalid_x402_version","accepts":[…]} | verify
      verify.unsupported_scheme | 402 {"x402Version":1,"error":"unsupported_scheme","accepts":[…]} | verify
      verify.invalid_network | 402 {"x402Version":1,"error":"invalid_network","accepts":[…]} | verify
      verify.invalid_payment_requirements | 402 {"x402Version":1,"error":"invalid_payment_requirements","accepts":[…]} | verify
      verify.invalid_exact_evm_payload_recipient_mismatch | 402 {"x402Version":1,"error":"invalid_exact_evm_payload_recipient_mismatch","accepts":[…]} | verify
      verify.invalid_exact_evm_payload_authorization_value | 402 {"x402Version":1,"error":"invalid_exact_evm_payload_authorization_value","accepts":[…]} | verify
      verify.invalid_exact_evm_payload_authorization_valid_after | 402 {"x402Version":1,"error":"invalid_exact_evm_payload_authorization_valid_after","accepts":[…]} | verify
      verify.invalid_exact_evm_payload_authorization_valid_before | 402 {"x402Version":1,"error":"invalid_exact_evm_payload_authorization_valid_before","accepts":[…]} | verify
      verify.invalid_exact_evm_payload_signature | 402 {"x402Version":1,"error":"invalid_exact_evm_payload_signature","accepts":[…]} | verify
      verify.invalid_exact_evm_payload_undeployed_smart_wallet | 402 {"x402Version":1,"error":"invalid_exact_evm_payload_undeployed_smart_wallet","accepts":[…]} | verify
      verify.insufficient_funds | 402 {"x402Version":1,"error":"insufficient_funds","accepts":[…]} | verify
      verify.invalid_transaction_state | 402 {"x402Version":1,"error":"invalid_transaction_state","accepts":[…]} | verify
      verify.bad_request | 402 {"x402Version":1,"error":"unexpected_verify_error","accepts":[…]} | verify
      verify.unauthorized | 402 {"x402Version":1,"error":"unexpected_verify_error","accepts":[…]} | verify
      verify.forbidden | 402 {"x402Version":1,"error":"unexpected_verify_error","accepts":[…]} | verify
      verify.body_too_large | 402 {"x402Version":1,"error":"unexpected_verify_error","accepts":[…]} | verify
      verify.unsupported_media_type | 402 {"x402Version":1,"error":"unexpected_verify_error","accepts":[…]} | verify
      verify.too_many_requests | 402 {"x402Version":1,"error":"unexpected_verify_error","accepts":[…]} | verify
      verify.unavailable | 402 {"x402Version":1,"error":"unexpected_verify_error","accepts":[…]} | verify
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
    expect(await tableOf(rowsOf("settle", 1), () => buy(1))).toMatchInlineSnapshot(`
      "settle.success | 200 {"goods":"a paid answer"} | receipt: success 0x… | verify, settle
      settle.invalid_payload | 402 {"x402Version":1,"error":"invalid_payload","accepts":[…]} | verify, settle
      settle.invalid_payment_requirements | 402 {"x402Version":1,"error":"invalid_payment_requirements","accepts":[…]} | verify, settle
      settle.insufficient_funds | 402 {"x402Version":1,"error":"insufficient_funds","accepts":[…]} | verify, settle
      settle.invalid_transaction_state | 402 {"x402Version":1,"error":"invalid_transaction_state","accepts":[…]} | verify, settle
      settle.bad_request | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
      settle.unauthorized | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
      settle.forbidden | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
      settle.body_too_large | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
      settle.unsupported_media_type | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
      settle.idempotency_key_reused | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
      settle.too_many_requests | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
      settle.gas_budget | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
      settle.unavailable | 402 {"x402Version":1,"error":"unexpected_settle_error","accepts":[…]} | verify, settle
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
  async function ask(name: ScenarioName): Promise<string> {
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
