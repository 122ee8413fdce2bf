import { join } from "node:path";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { decodeHeader } from "../../../src/protocol/payment-headers.ts";
import { membersOf } from "../../../src/util/json.ts";
import { repository } from "../../support/cli.ts";
import { listenOnLoopback } from "../../support/loopback-server.ts";
import type { Body } from "../../support/service.ts";

/* The test payers of a harness at the shop of examples/channels: the unmodified public one, configured by `harness.shopConfig`. */

// The example is JavaScript without types.
const { createShop } = await import(join(repository, "examples/channels/shop.mjs"));

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"], payTo: "recipients" });
});
beforeEach(() => harness.reset());
afterAll(() => harness?.close());

const methods = ["eip3009", "permit2"] as const;
type Shop = Awaited<ReturnType<typeof startShop>>;

/** A shop that sells for a thousandth of a dollar, and suggests to deposit ten times as much. */
async function startShop(method: (typeof methods)[number] = "eip3009") {
  const { facilitator, accepts } = harness.shopConfig("base", "$0.001", {
    ...{ scheme: "batch-settlement", method },
  });
  const { app, manager } = createShop({ facilitator, accepts });
  const { origin, close } = await listenOnLoopback(app);
  onTestFinished(() => close());
  return { url: `${origin}/report`, manager };
}

async function buy(buyer: ReturnType<typeof harness.buyer>, { url }: Shop) {
  const response = await buyer.fetch(url);
  const receipt = membersOf(decodeHeader(response.headers.get("PAYMENT-RESPONSE") ?? ""));
  return { status: response.status, body: await response.json(), receipt: receipt as Body };
}

/** How many deposits were settled: nothing else of buyers is. */
async function deposits(): Promise<number> {
  const listed = await harness.payments();
  return listed.filter(({ settle }) => settle?.outcome === "settled").length;
}

describe.each(methods)("deposits by %s", (method) => {
  test("three purchases on one deposit, and a buyer without memory goes on from there", async () => {
    const shop = await startShop(method);
    const offers = decodeHeader((await fetch(shop.url)).headers.get("PAYMENT-REQUIRED") ?? "");
    const extra = method === "permit2" ? { assetTransferMethod: method } : {};
    expect(offers).toMatchObject({ accepts: [{ scheme: "batch-settlement", extra }] });
    const buyer = harness.buyer("funded");
    const before = await harness.networks.base.balanceOf(testPayers.funded.address);
    for (const charged of ["1000", "2000", "3000"]) {
      const { status, body, receipt } = await buy(buyer, shop);
      expect([status, body]).toEqual([200, { report: "all is well" }]);
      expect(receipt.extra.channelState.chargedCumulativeAmount).toBe(charged);
    }
    expect(await deposits()).toBe(1);
    expect(before - (await harness.networks.base.balanceOf(testPayers.funded.address))).toBe(10_000n);

    const { status, receipt } = await buy(harness.buyer("funded"), shop);
    expect(status).toBe(200);
    expect(receipt.extra.channelState.chargedCumulativeAmount).toBe("4000");
    expect(await deposits()).toBe(1);
  });

  test("a channel that is used up gets another deposit", async () => {
    const shop = await startShop(method);
    const buyer = harness.buyer("funded");
    for (let purchase = 1; purchase <= 11; purchase++) {
      expect((await buy(buyer, shop)).status).toBe(200);
    }
    expect(await deposits()).toBe(2);
  });
});

test("purchases at the same time come one after the other", async () => {
  const shop = await startShop();
  const buyer = harness.buyer("funded");
  const bought = await Promise.all(Array.from({ length: 3 }, () => buy(buyer, shop)));
  expect(bought.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(await deposits()).toBe(1);
});

test.each(["smartWallet", "undeployedWallet", "delegated", "account"] as const)("%s pays", async (name) => {
  const { privateKey } = testPayers.funded;
  const shop = await startShop();
  const buyer = harness.buyer(name === "account" ? privateKeyToAccount(privateKey) : name);
  for (let purchase = 1; purchase <= 2; purchase++) expect((await buy(buyer, shop)).status).toBe(200);
  expect(await deposits()).toBe(1);
  expect(await shop.manager.claim()).toMatchObject([{ vouchers: 1 }]);
});

test("a payer without tokens cannot deposit", async () => {
  expect((await buy(harness.buyer("empty"), await startShop())).status).toBe(402);
});

test("harness.pay settles a deposit of its own each time", async () => {
  for (const method of methods) {
    for (let time = 1; time <= 2; time++) {
      const { verify, settle, receipt } = await harness.pay({
        ...{ network: "base", amount: "0.001", scheme: "batch-settlement", method },
      });
      expect(verify.body).toMatchObject({ isValid: true, extra: { balance: "0" } });
      expect(settle.body).toMatchObject({ success: true, amount: "5000" });
      expect(receipt?.status).toBe("success");
    }
  }
});
