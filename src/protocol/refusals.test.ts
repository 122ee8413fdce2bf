import { expect, test } from "vitest";
import { networks } from "./networks.ts";
import { refusals } from "./refusals.ts";

const { usdc } = networks.base;

test.each([
  { token: "USDC", asset: usdc, example: /decimals: 1 USDC is 1000000$/ },
  {
    token: "a token with 18 decimals",
    asset: { ...usdc, name: "Swiss Stable", symbol: "XCHF", decimals: 18 },
    example: /decimals: 1 XCHF is 1000000000000000000$/,
  },
  {
    token: "a token without decimals or symbol",
    asset: { ...usdc, name: "Ticket", decimals: 0 },
    example: /decimals: 1 Ticket is 1$/,
  },
  { token: "an unknown token", asset: undefined, example: /decimals$/ },
])("too small a balance of $token is explained in its own units", ({ asset, example }) => {
  expect(refusals.balanceTooSmall(0n, 10_000n, asset).message).toMatch(example);
});

test("an amount that is off by a power of ten is explained without the decimals of a token that may be another", () => {
  expect(refusals.valueDiffers(10_000_000_000n, 10_000n).message).toMatchInlineSnapshot(
    `"authorization.value is 10000000000, but exactly 10000 is required. The two differ by 10^6: find which side counts the token's decimals twice or not at all."`,
  );
});
