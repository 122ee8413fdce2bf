import { x402ResourceServer } from "@x402/core/server";
import Fastify, { type FastifyInstance } from "fastify";
import { expect, test } from "vitest";
import { requirePayments } from "../templates/fastify/payments.ts";

/** The facilitator is never asked here: no request carries a payment. */
const facilitator = {
  verify: () => Promise.reject(new Error("not called")),
  settle: () => Promise.reject(new Error("not called")),
  getSupported: async () => ({
    kinds: [{ x402Version: 2, scheme: "exact", network: "eip155:8453" as const }],
    extensions: [],
    signers: {},
  }),
};

async function open(routes: Parameters<typeof requirePayments>[1]): Promise<FastifyInstance> {
  const app = Fastify();
  await requirePayments(app, routes, new x402ResourceServer(facilitator));
  return app;
}

test("a priced route whose payment was never judged sends nothing", async () => {
  const app = await open({ "GET /report": { accepts: [] } });
  app.addHook("onRequest", async (_request, reply) => reply.send({ report: "all is well" }));
  app.get("/report", async () => ({ report: "all is well" }));
  app.get("/free", async () => ({}));
  const answer = await app.inject("/report");
  expect([answer.statusCode, answer.json()]).toEqual([500, { error: "payment_not_judged" }]);
  expect((await app.inject("/free")).statusCode).toBe(200);
  expect((await app.inject({ method: "HEAD", url: "/report" })).statusCode).toBe(500);
});

test("an app does not start with a price for a route that it does not have", async () => {
  const app = await open({ "GET /reports": { accepts: [] } });
  app.get("/report", async () => ({ report: "all is well" }));
  await expect(app.ready()).rejects.toThrow("GET /reports");
});
