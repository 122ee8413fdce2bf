import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";

/** Starts the shop with `next dev`, with the facilitator of a test, until the test ends. Gives the URL of the report. */
export async function openShop({ facilitator, organization, networks }) {
  const { caip2, payTo } = networks.base;
  const port = String(await findFreePort());
  // Next takes what the environment has before what `.env` has.
  const env = {
    ...process.env,
    NEXT_TELEMETRY_DISABLED: "1",
    X402_FACILITATOR_URL: facilitator.url,
    X402_API_KEY: organization.apiKey,
    X402_CAIP2: caip2,
    X402_PAY_TO: payTo,
  };
  const next = ["node_modules/next/dist/bin/next", "dev", "--hostname", "127.0.0.1", "--port", port];
  const shop = spawn(process.execPath, next, { stdio: ["ignore", "ignore", "inherit"], env });
  onTestFinished(async () => {
    shop.kill();
    if (shop.exitCode === null) await once(shop, "close");
  });
  const url = `http://127.0.0.1:${port}/report`;
  while ((await fetch(url).catch(() => undefined)) === undefined) {
    if (shop.exitCode !== null) {
      const why = "Next runs once in a folder: end the shop that runs here, if one does";
      throw new Error(`next dev ended with exit code ${shop.exitCode}. ${why}.`);
    }
    await sleep(50);
  }
  return url;
}

async function findFreePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
