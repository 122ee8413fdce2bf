import { expect, test } from "vitest";
import { judgeTable } from "../../test/support/judge/judge-tables.ts";
import { channelClientCases } from "./channels/channel-client-cases.ts";
import { channelShopCases } from "./channels/channel-shop-cases.ts";
import { clientCases } from "./client/client-cases.ts";
import { shopCases } from "./shop/shop-cases.ts";

test("the guide has every case of a client and no other, in the words of the report", () => {
  expect(judgeTable("what the shop does")).toEqual(
    clientCases.map(({ name, situation }) => [`\`${name}\``, situation]),
  );
});

test("the guide has every case of a client that keeps channels, and no other", () => {
  expect(judgeTable("what the shop with channels does")).toEqual(
    channelClientCases.map(({ name, situation }) => [`\`${name}\``, situation]),
  );
});

test("the guide has every case of a shop and no other, in the words of the report", () => {
  expect(judgeTable("what happens to the shop")).toEqual(
    shopCases.map(({ name, situation }) => [`\`${name}\``, situation]),
  );
});

test("the guide has every case of a shop that sells on channels, and no other", () => {
  expect(judgeTable("what happens to the shop with channels")).toEqual(
    channelShopCases.map(({ name, situation }) => [`\`${name}\``, situation]),
  );
});

test("no two cases have one name", () => {
  for (const cases of [
    [...clientCases, ...channelClientCases],
    [...shopCases, ...channelShopCases],
  ]) {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  }
});
