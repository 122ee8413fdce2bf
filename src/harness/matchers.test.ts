import { expect, test } from "vitest";
import { createFixtureEngine } from "../fixtures/engine/engine.ts";
import { testKeys } from "../payer/test-keys.ts";
import { encodeHeader } from "../protocol/payment-headers.ts";
import { toBeSettled } from "./matchers.ts";
import "./vitest/index.ts";

/** The body of a settle's answer for this payer. */
async function settle(payer: "funded" | "empty") {
  const engine = createFixtureEngine();
  const headers = { authorization: `Bearer ${testKeys.local.apiKey}`, "content-type": "application/json" };
  const body = JSON.stringify(await engine.payment({ payer }));
  const answer = await engine.reply({ method: "POST", path: "/v1/settle", headers, body });
  if (answer.kind !== "json") throw new Error("an answer in JSON was expected");
  return { status: answer.status, headers: answer.headers, body: answer.body };
}

function failureOf(assert: () => void): string {
  try {
    assert();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  throw new Error("the assertion has passed");
}

test("a settled payment passes in each of its forms", async () => {
  const answer = await settle("funded");
  expect(answer).toBeSettled();
  expect(answer.body).toBeSettled();
  expect({ settle: answer, receipt: null }).toBeSettled();
  await expect(Promise.resolve(answer)).resolves.toBeSettled();
  const receipt = { "PAYMENT-RESPONSE": encodeHeader(answer.body) };
  expect(new Response("goods", { headers: receipt })).toBeSettled();
  const former = { "X-PAYMENT-RESPONSE": encodeHeader(answer.body) };
  expect(new Response("goods", { headers: former })).toBeSettled();
  const transaction: string = Reflect.get(answer.body, "transaction");
  expect(failureOf(() => expect(answer).not.toBeSettled())).toContain(transaction);
});

test("the assertion has the reason, the next action and the fix", async () => {
  const answer = await settle("empty");
  expect(answer).not.toBeSettled();
  for (const received of [answer, answer.body, { settle: answer }]) {
    const message = failureOf(() => expect(received).toBeSettled());
    expect(message).toMatch(/reason: +insufficient_funds/);
    expect(message).toMatch(/message: +\S/);
    expect(message).toMatch(/fix: +\S/);
    expect(message).toMatch(/next: +\w+/);
    expect(message).toMatch(/payment: +\w+/);
    expect(message).toContain("docs/errors.md#insufficient_funds");
  }
});

test("problem details name their type", () => {
  const type = "urn:x402-facilitator-kit:unauthorized";
  const body = { type, detail: "The API key is unknown", success: false };
  const message = failureOf(() => expect({ status: 401, headers: {}, body }).toBeSettled());
  expect(message).toMatch(/status: +401/);
  expect(message).toMatch(/reason: +unauthorized/);
  expect(message).toMatch(/message: +The API key is unknown/);
});

test("a shop's 402 shows its findings, and a receipt without goods is no success", async () => {
  const refused = Object.assign(new Response("", { status: 402 }), {
    findings: [{ title: "Signed for another amount", at: "authorization.value", fix: "Sign for 10000" }],
  });
  const message = failureOf(() => expect(refused).toBeSettled());
  expect(message).toMatch(/status: +402/);
  expect(message).toContain("Signed for another amount (authorization.value)");
  expect(message).toContain("Sign for 10000");
  const { body } = await settle("funded");
  const charged = new Response("", { status: 500, headers: { "PAYMENT-RESPONSE": encodeHeader(body) } });
  expect(failureOf(() => expect(charged).toBeSettled())).toMatch(/status: +500/);
});

test.each([undefined, null, "settled", {}, { isValid: true }, { success: "true" }, new Response("free")])(
  "%s is no settled payment",
  (received) => {
    expect(toBeSettled(received).pass).toBe(false);
    expect(toBeSettled(received).message()).toMatch(/reason: +\S/);
  },
);
