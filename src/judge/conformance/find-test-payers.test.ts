import { expect, test } from "vitest";
import { testPayers } from "../../payer/test-payers.ts";
import { findUnfitPayers } from "./find-test-payers.ts";

const asset = { decimals: 6 } as const;

/** A chain on which every payer but `empty` has 1,000,000 USDC, except for these. */
function chainWith(others: Readonly<Record<string, bigint>>) {
  return {
    async balanceOf(account: string) {
      const [name = ""] = Object.entries(testPayers).find(([, { address }]) => address === account) ?? [];
      return others[name] ?? (name === "empty" ? 0n : 1_000_000_000_000n);
    },
  };
}

test("payers with their original balances can be used", async () => {
  expect(await findUnfitPayers(chainWith({}), asset)).toEqual(new Map());
});

test("a payer with the wrong balance is named with what it holds", async () => {
  const chain = chainWith({ empty: 1_500_000n, funded: 0n, smartWallet: 1_000_000n });
  expect(await findUnfitPayers(chain, asset)).toEqual(
    new Map([
      ["funded", "0 USDC"],
      ["empty", "1.5 USDC"],
    ]),
  );
});
