import fc from "fast-check";
import { expect, test } from "vitest";
import { generatedBodies } from "../../../test/support/generated-bodies.ts";
import { networks } from "../../protocol/networks.ts";
import { paymentRequestSchema } from "../payment-request-schema.ts";
import { parseTakenRequest } from "../taken-methods.ts";
import { exampleDeposit } from "./sign-channel.ts";

const { caip2: network, chainId, usdc } = networks.base;
const payTo = `0x${"ab".repeat(20)}` as const;
const accepted = {
  ...{ scheme: "batch-settlement", network, amount: "1000", asset: usdc.address, payTo },
  extra: { receiverAuthorizer: payTo, withdrawDelay: 900 },
};
const offer = { asset: usdc, payTo, extra: accepted.extra };
const deposit = exampleDeposit(offer, chainId, "eip3009");
const { channelConfig, voucher } = deposit;
const { maxClaimableAmount, signature } = voucher;
const claims = [{ voucher: { channel: channelConfig, maxClaimableAmount }, signature, totalClaimed: "1" }];
const payloads = {
  deposit,
  permit2: exampleDeposit(offer, chainId, "permit2"),
  voucher: { type: "voucher", channelConfig, voucher },
  "a buyer's refund": { type: "refund", channelConfig, voucher },
  "a shop's refund": { type: "refund", channelConfig, voucher, amount: "1", refundNonce: "0", claims },
  claim: { type: "claim", claims, claimAuthorizerSignature: signature },
  settle: { type: "settle", receiver: payTo, token: usdc.address },
};
const bodies = Object.entries(payloads).map(([name, payload]): [string, Record<string, unknown>] => [
  name,
  { x402Version: 2, paymentPayload: { x402Version: 2, accepted, payload }, paymentRequirements: accepted },
]);

test.each(bodies)("what OpenAPI shows of %s is what parses", (_, body) => {
  expect([paymentRequestSchema.safeParse(body).success, parseTakenRequest(body).ok]).toEqual([true, true]);
});

test("random bodies about channels are accepted by both or refused by both", () => {
  let good = 0;
  fc.assert(
    fc.property(generatedBodies(bodies.map(([, body]) => body)), (generated) => {
      const body: unknown = JSON.parse(JSON.stringify(generated ?? null));
      const { ok } = parseTakenRequest(body);
      if (ok) good++;
      expect(paymentRequestSchema.safeParse(body).success).toBe(ok);
    }),
    { numRuns: 2_000 },
  );
  expect(good).toBeGreaterThan(200);
  expect(good).toBeLessThan(1_800);
});
