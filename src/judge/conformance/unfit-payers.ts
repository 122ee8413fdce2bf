import type { LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { readQuantity } from "../../chain/rpc/read-hex.ts";
import type { RunningNetwork } from "../../harness/control/description.ts";
import { addressWord } from "../../protocol/hex.ts";
import { formatUnits } from "../../protocol/token-units.ts";
import { type TestPayerName, testPayers } from "../../published/test-payers.ts";

/** Test payers with an unexpected balance, each with that balance: `1 USDC`. */
export type UnfitPayers = ReadonlyMap<string, string>;

const names = Object.keys(testPayers) as TestPayerName[];

/** Finds the test payers on a local chain whose balance no longer fits their purpose. */
export async function findUnfitPayers(
  rpc: Pick<LocalRpc, "batch">,
  { address, decimals }: Pick<RunningNetwork["asset"], "address" | "decimals">,
): Promise<UnfitPayers> {
  const balances = await rpc.batch(
    names.map((name) => {
      const data = `0x70a08231${addressWord(testPayers[name].address)}`;
      return ["eth_call", { to: address, data }, "latest"];
    }),
  );
  return new Map(
    names.flatMap((name, index) => {
      const balance = readQuantity(balances[index]);
      if (balance === undefined) return [];
      // No scenario that pays takes as much as one whole token.
      const isFit = name === "empty" ? balance === 0n : balance >= 10n ** BigInt(decimals);
      return isFit ? [] : [[name, `${formatUnits(balance, decimals)} USDC`]];
    }),
  );
}
