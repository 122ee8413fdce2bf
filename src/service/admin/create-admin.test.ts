import type { LightMyRequestResponse } from "fastify";
import pino from "pino";
import { expect, onTestFinished, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { publish } from "../../../test/support/publish.ts";
import { createTimeline } from "../../observe/timeline/timeline.ts";
import { invalid } from "../../protocol/catalogue.ts";
import { networks } from "../../protocol/networks.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { createAdminApp } from "./create-admin.ts";

const serviceId = "the service";
const token = "9b1c5e0d7f3a2468ace013579bdf8642";
const contract = "0x00000000000000000000000000000000000000F0";
const signature = `0x${"5e".repeat(65)}` as const;
const authorized = { host: "127.0.0.1:4403", authorization: `Bearer ${token}` };

/** The admin listener of a service that has refused one payment. */
function start() {
  const timeline = createTimeline(serviceId);
  const app = createAdminApp({
    ...{ timeline, host: "127.0.0.1", token, ledger: { find: async () => null } },
    listChannels: async () => [],
    context: { contracts: { mainnet: contract, testnet: contract } },
    chainOf: () => ({
      ...{
        network: networks.base,
        facilitatorContract: contract,
        asset: networks.base.usdc,
      },
      ask: () =>
        Promise.reject(
          new UndeterminedError("No RPC endpoint of base answers", { hints: ["https://u:p@node"] }),
        ),
    }),
    logger: pino({ level: "silent" }),
  });
  onTestFinished(async () => {
    timeline.close();
    await app.close();
  });
  return app;
}

function refuseOne(): string {
  const payment = examplePayment({ payTo: contract, signature });
  const { settlementId } = payment;
  const about = {
    serviceId,
    requestId: "r",
    operation: "verify",
    settlementId,
    payment,
  } as const;
  const refusal = invalid("signature_wrong", "Not signed by the payer");
  const headers = { traceparent: "00-aa-bb-01" };
  publish("request", { ...about, headers });
  publish("checks", {
    ...about,
    checks: [{ check: "signatureHolds", refusal }],
  });
  publish("answer", {
    ...{ ...about, status: 200, tookMs: 2 },
    result: { outcome: "invalid", reason: refusal.reason, message: refusal.message },
  });
  return settlementId;
}

test.each([
  ["no token", { host: "127.0.0.1" }, 401],
  ["a wrong one", { host: "127.0.0.1", authorization: `Bearer ${token.slice(1)}0` }, 401],
  ["the token in another scheme", { host: "127.0.0.1", authorization: `Basic ${token}` }, 401],
  ["the token alone", { host: "127.0.0.1", authorization: token }, 401],
  ["another Host, as DNS rebinding gives it", { ...authorized, host: "evil.example" }, 403],
  ["a page of another site", { ...authorized, origin: "https://evil.example" }, 403],
])("nothing is shown to a request with %s", async (_, headers, status) => {
  const app = start();
  const id = refuseOne();
  const bodies = new Set<string>();
  for (const [method, url] of [
    ["GET", "/payments"],
    ["GET", `/payments/${id}`],
    ["GET", "/events"],
    ["GET", "/nothing"],
    ["GET", `/payments/${id}/transaction`],
  ] as const) {
    const answer = await app.inject({ method, url, headers });
    expect([method, url, answer.statusCode]).toEqual([method, url, status]);
    bodies.add(answer.body);
  }
  // It does not even tell what there is.
  expect(bodies.size).toBe(1);
  expect([...bodies][0]).not.toContain(token);
});

test("operators see a payment's outcome, and never its signature or the URL of a node", async () => {
  const app = start();
  const id = refuseOne();
  const get = (url: string): Promise<LightMyRequestResponse> => app.inject({ url, headers: authorized });
  expect((await get("/payments")).json()).toMatchObject({
    payments: [{ id, payerName: "funded", verify: { outcome: "invalid" } }],
  });
  expect((await get(`/payments/${id}`)).json()).toMatchObject({
    payment: { timeline: [{ kind: "request" }, { title: "signatureHolds", ok: false }, { kind: "answer" }] },
  });
  expect((await get("/payments/0x1234")).statusCode).toBe(404);
  expect((await get("/nothing")).json()).toEqual({
    error: expect.stringContaining("GET /payments"),
  });
  expect((await get("/settle")).statusCode).toBe(404);
  expect((await app.inject({ method: "HEAD", url: "/events", headers: authorized })).statusCode).toBe(404);
  for (const url of ["/payments", `/payments/${id}`]) {
    const { body, headers } = await get(url);
    expect(body).not.toContain(signature.slice(2));
    expect(headers["cache-control"]).toBe("no-store");
  }
});
