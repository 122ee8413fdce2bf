import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHarness } from "x402-facilitator-kit/harness";
import { createShop } from "../shop.mjs";

let harness;
beforeAll(async () => {
  // Channels pay plain receivers: the organization's own wallet.
  harness = await createHarness({ networks: ["base"], payTo: "recipients" });
}, 60_000);
afterAll(() => harness?.close());

test("three purchases on one deposit, and one payment to the shop", async () => {
  const { app, manager } = createShop(harness.shopConfig("base", "$0.001", { scheme: "batch-settlement" }));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const buyer = harness.buyer("funded");
  for (let purchase = 1; purchase <= 3; purchase++) {
    const response = await buyer.fetch(`http://127.0.0.1:${server.address().port}/report`);
    expect(response.status).toBe(200);
  }
  server.closeAllConnections();
  server.close();
  // The deposit alone was a transaction.
  expect(await harness.payments()).toHaveLength(1);

  await manager.claim();
  await manager.settle();
  expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(3_000n);
});
