import { expect, test } from "vitest";
import type { LocalCall } from "../../chain/rpc/local-rpc.ts";
import { testPayers } from "../../published/test-payers.ts";
import { findUnfitPayers } from "./payers-on-chain.ts";

const asset = { address: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", decimals: 6 } as const;

/** A chain on which every payer but `empty` has 1,000,000 USDC, except for these. */
function chainWith(others: Readonly<Record<string, bigint>>) {
  return {
    async batch(calls: readonly LocalCall[]) {
      return calls.map(([, call]) => {
        const data = JSON.stringify(call);
        const isOf = (address: string) => data.includes(address.slice(2).toLowerCase());
        const [name = ""] = Object.entries(testPayers).find(([, { address }]) => isOf(address)) ?? [];
        const balance = others[name] ?? (name === "empty" ? 0n : 1_000_000_000_000n);
        return `0x${balance.toString(16).padStart(64, "0")}`;
      });
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
