import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { clientCases } from "./client/client-cases.ts";
import { shopCases } from "./shop/shop-cases.ts";

const guide = await readFile(new URL("../../docs/judge-cases.md", import.meta.url), "utf8");

test.each([
  ...clientCases.map(({ name, shop }) => [name, shop]),
  ...shopCases.map(({ name, situation }) => [name, situation]),
])("the guide has the case %s, in the words of the report", (name, situation) => {
  expect(guide).toContain(`| \`${name}\` | ${situation} |`);
});

test("no two cases have one name", () => {
  for (const cases of [clientCases, shopCases]) {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  }
});
