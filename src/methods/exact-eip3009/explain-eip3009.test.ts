import { expect, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { exactEip3009Method } from "./eip3009-method.ts";
import { authorizationJson, authorizationOf } from "./eip3009-payload.ts";

test("a payment is described by the members that were signed, in their order, each with what it is", async () => {
  const { payment } = examplePayment({});
  const members = await exactEip3009Method.describe(payment);
  const written = authorizationJson(authorizationOf(payment));
  expect(members.map(({ label, value }) => [label, value])).toEqual(Object.entries(written));
  expect(members.map(({ label, kind }) => `${label}: ${kind}`)).toEqual([
    ...["from: other", "to: recipient", "value: amount"],
    ...["validAfter: time", "validBefore: time", "nonce: other"],
  ]);
});
