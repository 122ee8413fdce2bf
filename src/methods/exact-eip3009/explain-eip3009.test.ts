import { expect, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { authorizationJson } from "./authorization.ts";
import { authorizationOf, exactEip3009Method } from "./eip3009-method.ts";

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
