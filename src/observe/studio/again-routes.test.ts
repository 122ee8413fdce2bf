import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { KitError } from "../../util/errors.ts";
import { againRoutes } from "./again-routes.ts";
import { createPaymentLog } from "./payment-log.ts";
import { beginSummary } from "./payment-overview.ts";
import { createPaymentStore } from "./payment-store.ts";
import { KeptPayment } from "./stored-payment.ts";

const contract = "0x00000000000000000000000000000000000000F0";

test("a capture that cannot be made says why, and what to do", async () => {
  const request = examplePayment({ x402Version: 2 });
  const store = createPaymentStore("the service");
  const log = createPaymentLog(store);
  const app = Fastify();
  onTestFinished(async () => {
    log.close();
    store.close();
    await app.close();
  });
  const stored = new KeptPayment(request.settlementId, { payment: request });
  const hints = ["Capture a payment soon after it was made."];
  againRoutes(app, {
    log: {
      ...log,
      find: () => ({
        summary: beginSummary(stored),
        request,
        body: undefined,
        received: undefined,
        answers: [],
        timeline: [],
        omitted: 0,
      }),
    },
    context: { contracts: { mainnet: contract, testnet: contract } },
    resend: {
      send: () => Promise.reject(new Error("nothing is sent")),
      describeCurl: () => "",
      capture: () => Promise.reject(new KitError("The state of block 7 of base is gone", { hints })),
    },
  });
  const answer = await app.inject({ method: "POST", url: "/payments/0x12/capture" });
  expect(answer.statusCode).toBe(409);
  expect(answer.json()).toEqual({ error: "The state of block 7 of base is gone", hints });
});
