import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { type MockServer, startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { repository } from "../../support/cli.ts";
import { openRawConnection } from "../../support/http/raw-connection.ts";
import { findFreePort } from "../../support/postgres.ts";

/* The shops of `init` and the example, asked by a socket: fetch cannot send every request that reaches a handler. */

const shops = [
  "templates/express/shop.js",
  "templates/hono/shop.js",
  "templates/fastify/shop.js",
  "examples/merchant/src/main.ts",
];

/** No request here carries a payment, so any address does. */
const payTo = `0x${"11".repeat(20)}`;

/** Starts a shop as its README does, and returns its port. */
async function openShop(file: string, mock: MockServer) {
  const port = await findFreePort();
  const shop = spawn(process.execPath, [join(repository, file)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      PORT: String(port),
      X402_FACILITATOR_URL: new URL("/v1", mock.url).href,
      X402_API_KEY: testKeys.local.apiKey,
      X402_CAIP2: "eip155:8453",
      X402_PAY_TO: payTo,
    },
  });
  createInterface(shop.stdout).resume();
  await expect
    .poll(() =>
      fetch(`http://127.0.0.1:${port}/nothing`).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
  return {
    port,
    async [Symbol.asyncDispose]() {
      shop.kill();
      if (shop.exitCode === null) await once(shop, "close");
    },
  };
}

async function request(port: number, firstLine: string, ...headers: readonly string[]): Promise<string> {
  const connection = await openRawConnection(port);
  connection.send([firstLine, "Host: shop.example", "Connection: close", ...headers, "", ""].join("\r\n"));
  return connection.closed();
}

const statusOf = (answer: string) => Number(answer.split(" ")[1]);

test.each(shops)("%s sells the report, and sends it to nobody who did not pay", async (file) => {
  await using mock = await startMockServer();
  await using shop = await openShop(file, mock);
  for (const target of ["/report", "http://any/report", "http://any/report?x=1"]) {
    const answer = await request(shop.port, `GET ${target} HTTP/1.1`);
    expect([target, statusOf(answer)]).toEqual([target, 402]);
    expect(answer).not.toContain("all is well");
  }
  for (const target of ["/report", "http://any/report"]) {
    expect(statusOf(await request(shop.port, `HEAD ${target} HTTP/1.1`))).toBe(405);
  }
  expect(mock.calls.filter(({ operation }) => operation === "settle")).toEqual([]);
});
