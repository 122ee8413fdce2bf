import type { Harness } from "x402-facilitator-kit/harness";
import { testPayers } from "x402-facilitator-kit/test-payers";
import { createTest } from "x402-facilitator-kit/vitest";
import { buy, send, sign } from "./buyer.ts";
import { openShop } from "./open-shop.ts";

const test = createTest(["base"]);

const price = 10_000n; // 0.01 USDC
const goods = { status: 200, body: { report: "all is well" } };

/** What the shop's wallet has earned. */
const earned = ({ networks, organization }: Harness<"base">) =>
  networks.base.balanceOf(organization.recipient);

test("a buyer pays and gets the report", async ({ harness, expect }) => {
  await using shop = await openShop(harness);
  expect(await buy(shop.report)).toEqual(goods);
  expect(await earned(harness)).toBe(price);
});

test("a payment buys one report, not two", async ({ harness, expect }) => {
  await using shop = await openShop(harness);
  const payment = await sign(shop.report);
  expect(await send(shop.report, payment)).toEqual(goods);
  expect(await send(shop.report, payment)).toMatchObject({ status: 402 });
  expect(await earned(harness)).toBe(price);
});

test("a buyer without money gets nothing, and the report once they have some", async ({
  harness,
  expect,
}) => {
  await using shop = await openShop(harness);
  const payment = await sign(shop.report, "empty");
  expect(await send(shop.report, payment)).toMatchObject({ status: 402 });
  await harness.networks.base.fund(testPayers.empty.address, price);
  expect(await send(shop.report, payment)).toEqual(goods);
});

test("a payment that comes too late buys nothing", async ({ harness, expect }) => {
  await using shop = await openShop(harness);
  const payment = await sign(shop.report);
  await harness.networks.base.advanceTime(3_600);
  expect(await send(shop.report, payment)).toMatchObject({ status: 402 });
  expect(await earned(harness)).toBe(0n);
});

test("while the facilitator is down nothing is sold, and no payer charged", async ({ harness, expect }) => {
  await using shop = await openShop(harness);
  const payment = await sign(shop.report);
  const down = await harness.faults.onFacilitator().reset();
  expect((await send(shop.report, payment)).status).not.toBe(200);
  expect(await earned(harness)).toBe(0n);
  await down.remove();
  expect(await send(shop.report, payment)).toEqual(goods);
});

test("a buyer whose payment was settled, but the answer lost, sends it again and pays once", async ({
  harness,
  expect,
}) => {
  await using shop = await openShop(harness);
  const payment = await sign(shop.report);
  await harness.faults.onFacilitator({ operation: "settle", nth: 1 }).answerLost();
  expect((await send(shop.report, payment)).status).not.toBe(200);
  expect(await send(shop.report, payment)).toEqual(goods);
  expect(await send(shop.report, payment)).toMatchObject({ status: 402 });
  expect(await earned(harness)).toBe(price);
});

test("a sale succeeds although the chain's node takes a transaction and loses its answer", async ({
  harness,
  expect,
}) => {
  await using shop = await openShop(harness);
  await harness.faults.on("base", { method: "eth_sendRawTransaction*", nth: 1 }).answerLost();
  expect(await buy(shop.report)).toEqual(goods);
  expect(await harness.faults.list()).toMatchObject([{ fired: 1 }]);
  expect(await earned(harness)).toBe(price);
});
