import { expect, test } from "vitest";
import { examplePayment } from "../../test/support/example-payment.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { packRequest, unpackRequest } from "./pack-request.ts";

const one = examplePayment();

const requests: Record<string, PaymentRequest> = {
  "of version 1": examplePayment({ x402Version: 1 }),
  "of version 2": examplePayment({ x402Version: 2 }),
  "with the largest amount": examplePayment({ amount: 2n ** 256n - 1n }),
  "with an identifier": {
    ...one,
    identifier: { id: "purchase-1234567890", resource: 'https://shop.example/ü?"\\\n' },
  },
  "without payTo": { ...one, requirements: { ...one.requirements, payTo: undefined } },
};

test.each(Object.entries(requests))("a request %s is read as it was", (_, request) => {
  expect(unpackRequest(packRequest(request), request)).toEqual(request);
});
