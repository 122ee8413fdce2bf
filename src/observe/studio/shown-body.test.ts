import { expect, test } from "vitest";
import { exampleBody, parseBody } from "../../../test/support/example-payment.ts";
import { bodyOf, shownBody } from "./payment-detail.ts";

const contract = "0x00000000000000000000000000000000000000F0";
const context = { contracts: { mainnet: contract, testnet: contract } } as const;
const came = {
  ...exampleBody({ x402Version: 2 }),
  unknown: { token: 'x"y', deep: [{ url: "https://user:word@shop.example/?key=hidden" }], flag: true },
};
const request = parseBody(came);
const { nonce } = request.payment;

test("a body is sent again as it came, and made anew where it was not kept", () => {
  expect(bodyOf({ body: JSON.stringify(came) }, request, context)).toEqual(came);
  expect(bodyOf({ body: undefined }, request, context)).toMatchObject({ paymentPayload: { x402Version: 2 } });
});

test("a body is shown without its signature, and with what may be a secret masked, but for what names the payment", () => {
  const shown = shownBody({ body: JSON.stringify(came) }, request, context, () => "cut");
  expect(shown).toMatchObject({
    paymentPayload: { payload: { signature: "cut", authorization: { nonce } } },
    paymentRequirements: Reflect.get(came, "paymentRequirements"),
    unknown: { deep: [{ url: "https://user:••••@shop.example/?key=••••••" }], flag: true },
  });
  const text = JSON.stringify(shown);
  for (const secret of ["hidden", "word@", 'x\\"y', request.payment.signature.slice(10)])
    expect(text).not.toContain(secret);
});
