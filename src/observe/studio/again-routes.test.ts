import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { publish } from "../../../test/support/publish.ts";
import { KitError } from "../../util/errors.ts";
import { createTimeline } from "../timeline/timeline.ts";
import { againRoutes } from "./payment-routes.ts";

const contract = "0x00000000000000000000000000000000000000F0";

test("a capture that cannot be made says why, and what to do", async () => {
  const payment = examplePayment({ x402Version: 2 });
  const { settlementId } = payment;
  const timeline = createTimeline("the service");
  const app = Fastify();
  onTestFinished(async () => {
    timeline.close();
    await app.close();
  });
  publish("request", {
    serviceId: "the service",
    requestId: "1",
    operation: "verify",
    settlementId,
    payment,
  });
  const hints = ["Capture a payment soon after it was made."];
  againRoutes(app, {
    timeline,
    context: { contracts: { mainnet: contract, testnet: contract } },
    resend: {
      send: () => Promise.reject(new Error("nothing is sent")),
      describeCurl: () => "",
      capture: () => Promise.reject(new KitError("The state of block 7 of base is gone", { hints })),
    },
  });
  const answer = await app.inject({ method: "POST", url: `/payments/${settlementId}/capture` });
  expect(answer.statusCode).toBe(409);
  expect(answer.json()).toEqual({ error: "The state of block 7 of base is gone", hints });
});
