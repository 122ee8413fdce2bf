import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "vitest";
import type { Harness } from "x402-facilitator-kit/harness";
import { testPayers } from "x402-facilitator-kit/test-payers";
import { createTest } from "x402-facilitator-kit/vitest";
import { openShop } from "./open-shop.ts";

const test = createTest(["base"]);

/** What the shop's wallet has earned, in the token's smallest unit. */
const earned = ({ networks, organization }: Harness<"base">) =>
  networks.base.balanceOf(organization.recipient);

test("a buyer pays and gets the report", async ({ harness }) => {
  const url = await openShop(harness);
  const response = await harness.buyer("funded").fetch(url);
  expect([response.status, await response.json()]).toEqual([200, { report: "all is well" }]);
  expect(await earned(harness)).toBe(10_000n);
});

test("a buyer without money gets nothing", async ({ harness }) => {
  const url = await openShop(harness);
  expect((await harness.buyer("empty").fetch(url)).status).toBe(402);
  expect(await earned(harness)).toBe(0n);
});

test("buyer.ts buys", async ({ harness }) => {
  const { caip2, asset } = harness.networks.base;
  const buyer = {
    X402_URL: await openShop(harness),
    X402_PRIVATE_KEY: testPayers.funded.privateKey,
    X402_CAIP2: caip2,
    X402_ASSET: asset.address,
  };
  const options = { env: { ...process.env, ...buyer } };
  const { stdout } = await promisify(execFile)(process.execPath, ["buyer.ts"], options);
  expect(JSON.parse(stdout)).toEqual({ report: "all is well" });
  expect(await earned(harness)).toBe(10_000n);
});
