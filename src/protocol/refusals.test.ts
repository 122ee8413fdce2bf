import { expect, test } from "vitest";
import { eip3009Words } from "../methods/exact-eip3009/eip3009-method.ts";
import { type Asset, networks } from "./networks.ts";
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

test("an amount that is off by a power of ten is explained with the units of the token, where that is known", () => {
  const told = "The two differ by 10^6: find which side counts the token's decimals twice or not at all";
  const messageFor = (asset: Asset | undefined) =>
    refusals.valueDiffers(10_000_000_000n, 10_000n, asset, eip3009Words).message;
  expect(messageFor(usdc)).toBe(
    `authorization.value is 10,000 USDC (10000000000), but exactly 0.01 USDC (10000) is required. ${told}: 1 USDC is 1000000.`,
  );
  expect(messageFor(undefined)).toMatch(`${told}.`);
});

test.each([
  [3, 6, "zeros wrongly"],
  [6, 6, "decimals"],
  [12, 6, "decimals"],
  [6, 8, "zeros wrongly"],
  [8, 8, "decimals"],
  [10, 8, "decimals"],
])(
  "a difference of 10^%i of a token with %i decimals is explained by what can cause it",
  (power, decimals, what) => {
    const { message } = refusals.valueDiffers(10n ** BigInt(power), 1n, { ...usdc, decimals }, eip3009Words);
    expect(message).toContain(
      `differ by 10^${power}: find which side counts ${what === "decimals" ? "the token's " : ""}${what}`,
    );
  },
);
