import { execFile } from "node:child_process";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { defaultContracts } from "../../../src/fixtures/index.ts";
import { startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { decodeHeader, encodeHeader } from "../../../src/protocol/payment-headers.ts";
import { childEnvironment } from "../../support/child-environment.ts";
import { repository } from "../../support/cli.ts";
import { buildExample, type Example } from "../../support/examples/build-example.ts";
import { listenOnLoopback } from "../../support/loopback-server.ts";
import { goods, startMerchant } from "../../support/merchant.ts";

/*
 * The buyers of templates/ and examples/ at shops that ask for payments which stay valid for ten years.
 */

const tenYears = 315_360_000;
const { caip2, usdc } = networks.base;
const payTo = defaultContracts.mainnet;
const extra = { name: usdc.name, version: usdc.version };
const offer = { scheme: "exact", network: caip2, asset: usdc.address, amount: "10000", payTo, extra };
const accepts = [{ ...offer, maxTimeoutSeconds: tenYears }];

const payment = z.object({
  accepted: z.unknown(),
  payload: z.object({ authorization: z.object({ validBefore: z.string() }) }),
});

/** A shop that answers each payment in one way, and keeps what came. */
async function openShop(answerPayment: (response: ServerResponse) => unknown) {
  const payments: z.infer<typeof payment>[] = [];
  const shop = await listenOnLoopback((request, response) => {
    const header = request.headers["payment-signature"];
    if (header === undefined) return ask(response);
    payments.push(payment.parse(decodeHeader(String(header))));
    return answerPayment(response);
  });
  return { payments, url: `${shop.origin}/report`, [Symbol.asyncDispose]: () => shop.close() };
}

const ask = (response: ServerResponse) =>
  response.writeHead(402, { "payment-required": encodeHeader({ x402Version: 2, resource, accepts }) }).end();
const resource = { url: "http://127.0.0.1/report", description: "", mimeType: "application/json" };

type Run = (variables: Record<string, string>) => Promise<{ code: number; stdout: string; stderr: string }>;

const runFile =
  (program: string, ...args: readonly string[]): Run =>
  async (variables) => {
    try {
      const env = { ...childEnvironment(), ...variables };
      return { code: 0, ...(await promisify(execFile)(program, args, { env, timeout: 60_000 })) };
    } catch (error) {
      const { code, stdout, stderr } = Object(error);
      if (typeof code !== "number") throw error;
      return { code, stdout: String(stdout), stderr: String(stderr) };
    }
  };

// Without a compiler there is no row for its example, rather than one that cannot fail.
const compiled: [string, Example][] = [];
for (const language of ["go", "rust"] as const) {
  const example = await buildExample(language);
  if (example !== undefined) compiled.push([`examples/${language}`, example]);
}
afterAll(async () => {
  for (const [, example] of compiled) await example[Symbol.asyncDispose]();
});

const buyers: [string, Run][] = [
  ["templates/common/buyer.js", runFile(process.execPath, join(repository, "templates/common/buyer.js"))],
  ["examples/buyer", runFile(process.execPath, join(repository, "examples/buyer/src/main.ts"))],
  ["examples/python/buy.py", runFile("python3", "-B", join(repository, "examples/python/buy.py"))],
  ...compiled.map(([name, example]): [string, Run] => [name, (variables) => example.run(variables)]),
];

const unclear: [string, (response: ServerResponse) => unknown][] = [
  ["402", ask],
  ["502", (response) => response.writeHead(502).end("bad gateway")],
  ["a reset", (response) => response.socket?.resetAndDestroy()],
];

describe.concurrent.each(buyers)("%s", (_name, run) => {
  const buy = (url: string) =>
    run({
      X402_URL: url,
      X402_PRIVATE_KEY: testPayers.funded.privateKey,
      X402_NETWORK: "base",
      X402_CAIP2: caip2,
      X402_ASSET: usdc.address,
      X402_MAX_AMOUNT: "10000",
    });

  test.each(unclear)(
    "signs for ten minutes at most, and after %s says until when it can be taken",
    async (_answer, answerPayment) => {
      await using shop = await openShop(answerPayment);
      const end = await buy(shop.url);
      const latest = Date.now() / 1_000 + 600;
      expect(end).toMatchObject({ code: 1, stdout: "" });
      const nonces = new Set(shop.payments.map(({ payload }) => JSON.stringify(payload)));
      expect(nonces.size).toBe(1);
      for (const { accepted, payload } of shop.payments) {
        expect(accepted).toEqual(accepts[0]);
        const validBefore = Number(payload.authorization.validBefore);
        expect(validBefore).toBeLessThanOrEqual(latest);
        expect(validBefore).toBeGreaterThan(latest - 120);
        const time = new Date(validBefore * 1_000).toISOString().slice(11, 19);
        expect(end.stderr).toContain("Not bought yet; it can still be taken until ");
        expect(end.stderr).toContain(time);
      }
    },
    60_000,
  );

  test("buys there, from a shop of the public packages", async () => {
    await using mock = await startMockServer({ networks: ["base"] });
    const price = { asset: usdc.address, amount: "10000", extra };
    const shop = await startMerchant(
      { url: mock.url, apiKey: testKeys.local.apiKey },
      { "/report": { network: caip2, payTo, price, maxTimeoutSeconds: tenYears } },
    );
    try {
      const end = await buy(`${shop.origin}/report`);
      expect(end).toEqual({ code: 0, stdout: `${JSON.stringify(goods)}\n`, stderr: "" });
    } finally {
      await shop.close();
    }
  }, 60_000);
});
