import fc from "fast-check";
import { expect, test } from "vitest";
import { generatedBodies, wellFormedBodies } from "../../test/support/generated-bodies.ts";
import { parsePaymentRequest } from "../methods/methods.ts";
import { paymentRequestSchema } from "../methods/payment-request-schema.ts";

test("what OpenAPI shows is what parses: random bodies are accepted by both or refused by both", () => {
  let accepted = 0;
  fc.assert(
    fc.property(generatedBodies(), (body) => {
      const { ok } = parsePaymentRequest(body);
      if (ok) accepted++;
      expect(paymentRequestSchema.safeParse(body).success).toBe(ok);
    }),
    { numRuns: 2_000 },
  );
  // Of both there are many.
  expect(accepted).toBeGreaterThan(200);
  expect(accepted).toBeLessThan(1_800);
});

test.each(
  wellFormedBodies().map((body, index) => [
    ["version 1", "version 2", "the short form", "Permit2", "scheme upto"][index],
    body,
  ]),
)("a body of %s is accepted by both", (_, body) => {
  expect([paymentRequestSchema.safeParse(body).success, parsePaymentRequest(body).ok]).toEqual([true, true]);
});

test.each<[object, string]>([
  [{ maxAmountRequired: undefined }, "no amount"],
  [{ payTo: undefined }, "no payTo in the full form"],
  [{ scheme: undefined }, "no scheme in the full form"],
  [{ amount: "10001" }, "amounts that differ"],
  [{ recipient: `0x${"1".repeat(40)}` }, "recipients that differ"],
  [{ network: "polygon" }, "networks that differ"],
])("requirements with %j are refused by both: %s", (changes) => {
  const [body] = wellFormedBodies();
  const paymentRequirements = { ...Object(body?.paymentRequirements), ...changes };
  const changed: unknown = JSON.parse(JSON.stringify({ ...body, paymentRequirements }));
  expect([paymentRequestSchema.safeParse(changed).success, parsePaymentRequest(changed).ok]).toEqual([
    false,
    false,
  ]);
});
