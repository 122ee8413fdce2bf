import { expect, onTestFinished, test } from "vitest";
import { listenOnLoopback } from "../../../test/support/loopback-server.ts";
import { createPaymentReader } from "./read-payments.ts";

async function readerOf(status: number, text: string) {
  const server = await listenOnLoopback((_, response) => response.writeHead(status).end(text));
  onTestFinished(() => server.close());
  return { origin: server.origin, reader: createPaymentReader(server.origin) };
}

const summary = {
  id: "request-1",
  version: 1,
  firstSeenAt: 1,
  lastSeenAt: 1,
  network: null,
  payer: null,
  payerName: null,
  amount: null,
  asset: null,
  x402Version: null,
  verify: null,
  settle: null,
  ledger: null,
  transaction: null,
  delivered: null,
};

test.each([
  [500, '{"error":"It failed; the log says why"}', " answers with status 500: It failed; the log says why"],
  [502, "<h1>Bad Gateway</h1>", " answers with status 502"],
  [404, "<h1>Not Found</h1>", " answers with status 404"],
  // As a `serve` does.
  [404, '{"title":"Not found","status":404}', " answers with status 404"],
  [200, "<h1>It works!</h1>", " answers, and not with payments"],
  [200, '{"status":"ok"}', " answers, and not with payments"],
])(
  "an address that answers with %i and %s is told from one that does not answer",
  async (status, text, said) => {
    const { origin, reader } = await readerOf(status, text);
    await expect(reader.list(1)).rejects.toThrow(`${origin}/payments?limit=1${said}`);
    await expect(reader.find("request-1")).rejects.toThrow(`${origin}/payments/request-1${said}`);
    const { signal } = new AbortController();
    if (status !== 200) await expect(reader.follow(() => {}, signal)).rejects.toThrow(`status ${status}`);
  },
);

test("an address that shows no payments is told which do", async () => {
  const { reader } = await readerOf(404, '{"title":"Not found","status":404}');
  await expect(reader.list(1)).rejects.toMatchObject({
    hints: [expect.stringMatching(/^Only a running `x402-kit up` or `mock` shows payments, and the admin/)],
  });
});

test("an address where nothing answers is named as such", async () => {
  const reader = createPaymentReader("http://127.0.0.1:9");
  await expect(reader.list(1)).rejects.toThrow(
    "No payments can be read at http://127.0.0.1:9: nothing answers there",
  );
});

test("a payment that cannot be read hides no other", async () => {
  const { reader } = await readerOf(200, JSON.stringify({ apiVersion: 1, payments: [summary, { id: 7 }] }));
  expect(await reader.list(2)).toMatchObject([{ id: "request-1" }]);
});

test("a payment that is not known there is no error", async () => {
  const { reader } = await readerOf(404, '{"error":"No request has named this payment"}');
  expect(await reader.find("request-1")).toBeUndefined();
});

test("a stream whose event never ends is no payments'", async () => {
  const server = await listenOnLoopback((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const timer = setInterval(() => response.write("x".repeat(300_000)), 1);
    response.once("close", () => clearInterval(timer));
  });
  onTestFinished(() => server.close());
  const reader = createPaymentReader(server.origin);
  await expect(reader.follow(() => {}, AbortSignal.timeout(10_000))).rejects.toMatchObject({
    code: "unexpected-answer",
  });
});
