import { spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import type { Harness } from "x402-facilitator-kit/harness";
import { command, variables } from "./shop-command.ts";

/** Starts the shop as in production, but for its facilitator, until the end of the test. Gives the URL of the report. */
export async function openShop({ facilitator, organization, networks }: Harness<"base">): Promise<string> {
  const { caip2, payTo } = networks.base;
  const port = await findFreePort();
  const env = {
    ...process.env,
    ...variables,
    PORT: String(port),
    X402_FACILITATOR_URL: facilitator.url,
    X402_API_KEY: organization.apiKey,
    X402_CAIP2: caip2,
    X402_PAY_TO: payTo,
  };
  const shop = spawn(process.execPath, command, { stdio: ["ignore", "ignore", "inherit"], env });
  onTestFinished(async () => {
    shop.kill();
    if (shop.exitCode === null) await once(shop, "close");
  });
  const url = `http://127.0.0.1:${port}/report`;
  while ((await fetch(url).catch(() => undefined)) === undefined) {
    if (shop.exitCode !== null) throw new Error(`The shop ended with exit code ${shop.exitCode}`);
    await sleep(50);
  }
  return url;
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
