import { HTTPFacilitatorClient } from "@x402/core/server";
import {
  appendPaymentIdentifierToExtensions,
  declarePaymentIdentifierExtension,
  generatePaymentId,
  PAYMENT_IDENTIFIER,
} from "@x402/extensions/payment-identifier";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { runningChain } from "../../support/running-chain.ts";
import {
  addRival,
  type Body,
  balanceOf,
  type Order,
  post,
  signedRequest,
  startTestHarness,
} from "../../support/service.ts";

/*
 * The extension `payment-identifier` of the public protocol: what a payer's client names is paid for once.
 */

let harness: RunningHarness;
let rivalKey: string;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], settleWaitMs: 1_000 });
  rivalKey = await addRival(harness);
});
afterAll(() => harness.close());

/** The header of a shop that has successes repeated to the identifiers of its payers' clients, and says what it sells. */
const repeatsOf = (resource: string) => ({
  "idempotency-key": `${PAYMENT_IDENTIFIER}; resource="${resource}"`,
});
const repeats = repeatsOf("/report");

/** A payment as a client makes it for a shop that has declared the extension. */
async function named(id: string | undefined, order: Order = {}): Promise<Body> {
  const body = await signedRequest(harness, { x402Version: 2, ...order });
  const declared = { [PAYMENT_IDENTIFIER]: declarePaymentIdentifierExtension(id === undefined) };
  body.paymentPayload.extensions =
    id === undefined ? declared : appendPaymentIdentifierToExtensions(declared, id);
  return body;
}

function clientOf(extraHeaders: Record<string, string> = {}) {
  const headers = { Authorization: localOrganization.apiKey, ...extraHeaders };
  return new HTTPFacilitatorClient({
    url: harness.description.facilitator.url,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: {} }),
  });
}

const received = () => balanceOf(harness, localOrganization.recipient);

test("the extension is among the supported ones", async () => {
  expect((await clientOf().getSupported()).extensions).toContain(PAYMENT_IDENTIFIER);
});

describe("the same payment under the same identifier", () => {
  test("gets the same answer again for a shop that asks for that, and moves the money once", async () => {
    const { paymentPayload, paymentRequirements } = await named(generatePaymentId());
    const before = await received();
    const shop = clientOf(repeats);
    expect(await shop.verify(paymentPayload, paymentRequirements)).toMatchObject({ isValid: true });
    const first = await shop.settle(paymentPayload, paymentRequirements);
    expect(first).toMatchObject({ success: true });
    expect(await shop.verify(paymentPayload, paymentRequirements)).toMatchObject({ isValid: true });
    expect(await shop.settle(paymentPayload, paymentRequirements)).toEqual(first);
    expect(await received()).toBe(before + 10_000n);
  });

  test("buys nothing a second time from a shop that does not: the buyer writes the identifier", async () => {
    const body = await named(generatePaymentId());
    const first = await post(harness, "settle", body);
    expect(first.body).toMatchObject({ success: true });
    expect((await post(harness, "verify", body)).body).toMatchObject({
      invalidReason: "invalid_transaction_state",
    });
    const again = await post(harness, "settle", body);
    expect(again.body).toMatchObject({ success: false, nextAction: "give_up", paymentState: "taken" });
    expect(again.body.errorMessage).toContain(first.body.transaction);
  });

  test("twenty at once, for a shop that asks for that: pending or the one success, never a refusal", async () => {
    const body = await named(generatePaymentId());
    const before = await received();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post(harness, "settle", body, repeats)),
    );
    const hashes = answers.flatMap((answer) => (answer.body.success ? [answer.body.transaction] : []));
    expect(new Set(hashes).size).toBe(1);
    for (const { status, body } of answers) expect([status, body.success]).not.toEqual([200, false]);
    expect(await received()).toBe(before + 10_000n);
  });

  test("is pending while it is under way", async () => {
    const body = await named(generatePaymentId());
    await runningChain(harness, "base").hold();
    const answers = await Promise.all([post(harness, "settle", body), post(harness, "settle", body)]);
    await runningChain(harness, "base").release();
    for (const { status, body } of answers) {
      expect(status).toBe(503);
      expect(body).toMatchObject({ errorReason: "settlement_pending" });
    }
  });

  test("nothing is repeated without an identifier, or under another one than it was settled under", async () => {
    const body = await named(generatePaymentId());
    await post(harness, "settle", body, repeats);
    const { extensions, ...unnamed } = body.paymentPayload;
    const renamed = await named(generatePaymentId());
    for (const paymentPayload of [unnamed, { ...unnamed, extensions: renamed.paymentPayload.extensions }]) {
      const answer = await post(harness, "settle", { ...body, paymentPayload }, repeats);
      expect(answer.body).toMatchObject({ errorReason: "invalid_transaction_state" });
    }
  });
});

describe("another payment under the same identifier", () => {
  test("is a conflict, and the buyer who signs again is not charged twice", async () => {
    const id = generatePaymentId();
    await post(harness, "settle", await named(id));
    const before = await received();
    const second = await named(id);
    const { paymentPayload, paymentRequirements } = second;
    const settle = clientOf(repeats).settle(paymentPayload, paymentRequirements);
    await expect(settle).rejects.toMatchObject({ name: "SettleError", statusCode: 409 });
    const verify = clientOf(repeats).verify(paymentPayload, paymentRequirements);
    await expect(verify).rejects.toMatchObject({ name: "VerifyError", statusCode: 409 });
    const answer = await post(harness, "settle", second);
    expect(answer.status).toBe(409);
    expect(answer.headers["content-type"]).toContain("application/problem+json");
    expect(answer.body).toMatchObject({
      type: "urn:x402-facilitator-kit:problem:payment-identifier-reused",
      success: false,
      errorReason: "unexpected_settle_error",
      transaction: "",
      nextAction: "give_up",
    });
    expect(await received()).toBe(before);
  });

  test("is a conflict while the first one is under way too, and when both come at once", async () => {
    const id = generatePaymentId();
    const before = await received();
    const [first, second] = [await named(id), await named(id)];
    await runningChain(harness, "base").hold();
    const statuses = (await Promise.all([first, second].map((body) => post(harness, "settle", body)))).map(
      ({ status }) => status,
    );
    expect(statuses.sort()).toEqual([409, 503]);
    expect((await post(harness, "settle", await named(id))).status).toBe(409);
    await runningChain(harness, "base").release();
    const answers = await Promise.all([first, second].map((body) => post(harness, "settle", body)));
    expect(answers.filter(({ body }) => body.success === true)).toHaveLength(1);
    expect(await received()).toBe(before + 10_000n);
  });

  test("so is the same payment for another resource, by the buyer's word or the shop's", async () => {
    const body = await named(generatePaymentId());
    await post(harness, "settle", body);
    body.paymentPayload.resource.url = "https://merchant.example/other";
    expect((await post(harness, "settle", body)).status).toBe(409);
    expect((await post(harness, "settle", body, repeats)).status).toBe(409);
  });

  test("one payment buys one of twenty resources, whatever URL the buyer writes", async () => {
    const body = await named(generatePaymentId());
    const before = await received();
    const served: string[] = [];
    for (const path of Array.from({ length: 20 }, (_, index) => `/reports/${index}`)) {
      for (const url of ["https://merchant.example/reports/0", `https://merchant.example${path}`]) {
        body.paymentPayload.resource.url = url;
        const { status, body: answer } = await post(harness, "settle", body, repeatsOf(path));
        if (status === 200 && answer.success === true) served.push(path);
      }
    }
    expect([...new Set(served)]).toEqual(["/reports/0"]);
    expect(await received()).toBe(before + 10_000n);
  });

  test("what the shop names is no URL that the buyer wrote: a payment for what is sold once buys nothing that is repeated", async () => {
    const body = await named(generatePaymentId());
    body.paymentPayload.resource.url = "/report";
    expect((await post(harness, "settle", body)).body).toMatchObject({ success: true });
    expect((await post(harness, "verify", body, repeats)).status).toBe(409);
    expect((await post(harness, "settle", body, repeats)).status).toBe(409);
  });

  test("what the shop sells may be named without a space", async () => {
    const body = await named(generatePaymentId());
    const unspaced = { "idempotency-key": `${PAYMENT_IDENTIFIER};resource="/report"` };
    const { body: answer } = await post(harness, "settle", body, unspaced);
    expect(answer).toMatchObject({ success: true });
    expect((await post(harness, "settle", body, repeats)).body).toEqual(answer);
    expect((await post(harness, "verify", body, unspaced)).body).toMatchObject({ isValid: true });
  });

  test.each([
    ";resource=/report",
    ';resource="',
    ';resource="/a"b"',
    "; resource=/report",
    ';Resource="/report"',
  ])("and in another form, as with %s, is 400 and no key of the shop's own", async (end) => {
    const headers = { "idempotency-key": `${PAYMENT_IDENTIFIER}${end}` };
    const answer = await post(harness, "settle", await named(generatePaymentId()), headers);
    expect(answer.status).toBe(400);
    expect(answer.body.detail).toMatch(/^Idempotency-Key must be payment-identifier; resource="…" with/);
  });

  test.each([
    ["k".repeat(500), "; this one has 500"],
    ["order 402", ""],
    ["", ""],
  ])("and a key of the shop's own that is none is 400, with what a key is: %j", async (key, end) => {
    const headers = { "idempotency-key": key };
    const answer = await post(harness, "settle", await named(generatePaymentId()), headers);
    expect(answer.status).toBe(400);
    expect(answer.body.detail).toBe(
      `Idempotency-Key must be 1 to 255 visible ASCII characters without spaces${end}`,
    );
  });

  test("nothing is repeated where the shop does not say what it sells", async () => {
    const body = await named(generatePaymentId());
    const plain = { "idempotency-key": PAYMENT_IDENTIFIER };
    expect((await post(harness, "settle", body, plain)).body).toMatchObject({ success: true });
    expect((await post(harness, "settle", body, plain)).body).toMatchObject({
      success: false,
      errorReason: "invalid_transaction_state",
    });
    // Nor is it a key of the shop's own, which another body could not have.
    expect((await post(harness, "settle", await named(generatePaymentId()), plain)).status).toBe(200);
  });

  test("is none where the first one belongs to another organization, or was refused", async () => {
    const id = generatePaymentId();
    await post(harness, "settle", await named(id), { authorization: rivalKey });
    const poor = await post(harness, "settle", await named(id, { payer: "empty" }));
    expect(poor.body).toMatchObject({ errorReason: "insufficient_funds" });
    expect((await post(harness, "settle", await named(id))).body).toMatchObject({ success: true });
  });
});

describe("an identifier that cannot be read", () => {
  test("is 400, and so is none where the shop requires one", async () => {
    const body = await named(undefined);
    expect((await post(harness, "verify", body)).status).toBe(400);
    expect((await post(harness, "settle", body)).body.detail).toContain("an id is required");
    body.paymentPayload.extensions[PAYMENT_IDENTIFIER].info.id = "too short";
    expect((await post(harness, "settle", body)).body.detail).toContain("16 to 128");
  });

  test("means nothing in version 1, which has no extensions", async () => {
    const plain = await signedRequest(harness);
    plain.paymentPayload.extensions = { [PAYMENT_IDENTIFIER]: { info: { id: "x" } } };
    expect((await post(harness, "settle", plain)).body).toMatchObject({ success: true });
  });
});
