import type { AskNode } from "../../chain/rpc/calls.ts";
import { askFact, tokenSources } from "../../methods/on-chain/state-facts.ts";
import { allowanceSource } from "../../methods/permit2/on-chain/permit2-state.ts";
import { type TestPayer, type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import { isBytes } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { formatUnits } from "../../protocol/token-units.ts";
import type { MovedMoney } from "./moved-money.ts";

/** The test payers with an unexpected balance, with that balance, such as `1 USDC`. */
export type UnfitPayers = ReadonlyMap<string, string>;

const payerNames = Object.keys(testPayers) as TestPayerName[];

/** One whole token. No scenario that pays takes that much. */
function enoughOf({ decimals }: Pick<Asset, "decimals">): bigint {
  return 10n ** BigInt(decimals);
}

/** Finds the test payers on a local chain whose balance no longer fits their purpose. */
export async function findUnfitPayers(
  money: Pick<MovedMoney, "balanceOf">,
  asset: Pick<Asset, "decimals">,
): Promise<UnfitPayers> {
  const found = await Promise.all(
    payerNames.map(async (name): Promise<[string, string][]> => {
      const balance = await money.balanceOf(testPayers[name].address);
      const isFit = name === "empty" ? balance === 0n : balance >= enoughOf(asset);
      return isFit ? [] : [[name, `${formatUnits(balance, asset.decimals)} USDC`]];
    }),
  );
  return new Map(found.flat());
}

/** Finds the test payers that are in their intended state on a chain. A chain that is not of this kit has none. */
export async function findTestPayers(ask: AskNode, asset: Asset): Promise<ReadonlySet<TestPayerName>> {
  async function isAsItShouldBe(name: TestPayerName): Promise<boolean> {
    const { address, owner, approved }: TestPayer = testPayers[name];
    const account = { asset: asset.address, payer: address };
    const { payerBalance, payerBlacklisted } = tokenSources(account);
    const [balance = 0n, isBlacklisted, allowance = 0n, { result: code }] = await Promise.all([
      askFact(ask, payerBalance),
      askFact(ask, payerBlacklisted),
      askFact(ask, allowanceSource(account)),
      ask("eth_getCode", address, "latest"),
    ]);
    const hasCode = isBytes(code) && code !== "0x";
    const isWallet = owner !== undefined && name !== "undeployedWallet";
    const isAllowed = { nothing: allowance === 0n, 1: allowance === 1n, all: allowance > 1n };
    return (
      hasCode === (isWallet || name === "delegated" || name === "hijacked") &&
      isBlacklisted === (name === "blacklisted") &&
      (name === "empty" ? balance === 0n : balance >= enoughOf(asset) && isAllowed[approved ?? "all"])
    );
  }

  // Other chains have none of them, so one lookup is enough.
  if (!(await isAsItShouldBe("funded"))) return new Set();
  const found = await Promise.all(payerNames.map(isAsItShouldBe));
  return new Set(payerNames.filter((_, index) => found[index]));
}
