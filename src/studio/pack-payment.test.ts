import { expect, test } from "vitest";
import { examplePayment } from "../../test/support/example-payment.ts";
import { refusals } from "../protocol/refusals.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { packMessages, packRequest, unpackMessages, unpackRequest } from "./pack-payment.ts";
import type { PaymentMessage } from "./payment-message.ts";

const one = examplePayment();
const { settlementId: id } = one;

const requests: Record<string, PaymentRequest> = {
  "of version 1": examplePayment({ x402Version: 1 }),
  "of version 2": examplePayment({ x402Version: 2 }),
  "with the largest amount": examplePayment({ amount: 2n ** 256n - 1n }),
  "with an identifier": {
    ...one,
    identifier: { id: "purchase-1234567890", resource: "https://shop.example/ü" },
  },
  "without payTo": { ...one, requirements: { ...one.requirements, payTo: undefined } },
};

test.each(Object.entries(requests))("a request %s is read as it was", (_, request) => {
  expect(unpackRequest(packRequest(request), request)).toEqual(request);
});

const passed = { check: "signatureHolds", refusal: undefined };
const asked: PaymentMessage = { requestId: "1", operation: "verify" };
const answered: PaymentMessage = { ...asked, status: 200, result: { outcome: "valid" }, tookMs: 1.25 };

test("the messages of a verify are read as they were, with their times", () => {
  const refused = { check: "windowIsOpen", refusal: refusals.usedHere() };
  const times = [1_790_000_000_000.25, 1_790_000_000_001, 1_790_000_000_001 + 1 / 1_024, 1_790_000_009_999];
  const messages: PaymentMessage[] = [
    asked,
    { requestId: null, checks: [passed, refused], times: times.slice(1, 3) },
    { endpoint: "2", about: new Map([[id, ["eth_call"]]]), durationMs: 0.5, error: "timeout" },
    answered,
  ];
  const text = packMessages(id, { messages, times }) ?? "";
  expect(unpackMessages(id, text)).toEqual({ messages, times });
});

test("checks that all passed are told apart from others", () => {
  const lists = [["a"], ["a", "b"], ["b"], ["a"]].map((names) =>
    names.map((check) => ({ check, refusal: undefined })),
  );
  const times = [1, 2];
  const messages = lists.map((checks): PaymentMessage => ({ requestId: "1", checks, times }));
  const text = packMessages(id, { messages, times: lists.map((_, index) => index) }) ?? "";
  expect(unpackMessages(id, text).messages).toEqual(messages);
});

test.each<[string, PaymentMessage]>([
  ["whose caller has left", { ...answered, status: undefined, result: { outcome: "abandoned" } }],
  ["that is being settled", { serviceId: "1", settlementId: id, step: "delivered" }],
  ["whose transaction was asked for", { endpoint: "1", about: new Map(), durationMs: 1, error: undefined }],
])("a payment %s stays as it is, since there is more to come", (_, message) => {
  expect(packMessages(id, { messages: [asked, message], times: [1, 2] })).toBeUndefined();
});
