import { join } from "node:path";
import { createWalletClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { mockBatchSettlementAbi } from "../../../src/contracts/mockBatchSettlement.ts";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { batchSettlementAddress } from "../../../src/methods/batch-settlement/contracts.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { repository } from "../../support/cli.ts";
import { listenOnLoopback } from "../../support/loopback-server.ts";

/* A buyer who takes the deposit back, and a shop that has or has not claimed by then; a shop that has lost its memory. */

// The example is JavaScript without types.
const { createShop } = await import(join(repository, "examples/channels/shop.mjs"));

const escrow = { address: batchSettlementAddress, abi: mockBatchSettlementAbi } as const;
const withdrawDelay = 900;
const payer = privateKeyToAccount(testPayers.funded.privateKey);

let harness: Harness<"base">;
let base: Harness<"base">["networks"]["base"];
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"], payTo: "recipients" });
  base = harness.networks.base;
});
beforeEach(() => harness.reset());
afterAll(() => harness?.close());

async function startShop() {
  const terms = harness.shopConfig("base", "$0.001", { scheme: "batch-settlement" });
  const { app, manager } = createShop(terms);
  const { origin, close } = await listenOnLoopback(app);
  onTestFinished(() => close());
  return { url: `${origin}/report`, manager };
}

/** Buys three times for 1,000 units, and announces the withdrawal of everything that is in the channel. */
async function buyAndWithdraw(url: string) {
  const buyer = harness.buyer("funded");
  for (let purchase = 1; purchase <= 3; purchase++) expect((await buyer.fetch(url)).status).toBe(200);
  const [created] = await base.client.getContractEvents({
    ...escrow,
    ...{ eventName: "ChannelCreated", fromBlock: 0n, strict: true },
  });
  const { config } = created?.args ?? {};
  if (config === undefined) throw new Error("no channel was opened");
  await base.client.setBalance({ address: payer.address, value: 10n ** 18n });
  const wallet = createWalletClient({ account: payer, transport: http(base.rpcUrl) });
  const transaction = { ...escrow, chain: null } as const;
  await wallet.writeContract({ ...transaction, functionName: "initiateWithdraw", args: [config, 10_000n] });
  return {
    /** Withdraws, when the shop's time is over. */
    async finish() {
      await base.advanceTime(withdrawDelay);
      await wallet.writeContract({ ...transaction, functionName: "finalizeWithdraw", args: [config] });
      await base.mine();
    },
  };
}

test("a shop that claims before a withdrawal ends is paid for what it sold, and the buyer gets the rest", async () => {
  const before = await base.balanceOf(payer.address);
  const shop = await startShop();
  const withdrawal = await buyAndWithdraw(shop.url);
  expect(await shop.manager.claim()).toMatchObject([{ vouchers: 1 }]);
  await withdrawal.finish();
  await shop.manager.settle();
  expect(await base.balanceOf(harness.organization.recipient)).toBe(3_000n);
  expect(before - (await base.balanceOf(payer.address))).toBe(3_000n);
});

test("a shop that claims too late gets nothing, and is told why", async () => {
  const shop = await startShop();
  const withdrawal = await buyAndWithdraw(shop.url);
  await withdrawal.finish();
  await expect(shop.manager.claim()).rejects.toThrow("ClaimExceedsBalance");
  expect(await base.balanceOf(harness.organization.recipient)).toBe(0n);
});

test("a shop that has lost its memory is paid by the next purchase for those before it too", async () => {
  const buyer = harness.buyer("funded");
  const first = await startShop();
  for (let purchase = 1; purchase <= 3; purchase++) expect((await buyer.fetch(first.url)).status).toBe(200);
  const next = await startShop();
  expect((await buyer.fetch(next.url)).status).toBe(200);
  expect(await next.manager.claimAndSettle()).toMatchObject({ claims: [{ vouchers: 1 }] });
  expect(await base.balanceOf(harness.organization.recipient)).toBe(4_000n);
  await expect(first.manager.claim()).rejects.toThrow("cumulative_below_claimed");
});
