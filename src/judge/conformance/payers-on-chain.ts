import type { askNode } from "../../chain/rpc/calls.ts";
import { balanceOf, isBlacklisted, type ViewCall } from "../../chain/views.ts";
import { allowanceOf } from "../../methods/permit2/on-chain/permit2-state.ts";
import { isBytes, isBytes32 } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { formatUnits } from "../../protocol/token-units.ts";
import { type TestPayer, type TestPayerName, testPayers } from "../../published/test-payers.ts";
import type { MovedMoney } from "./moved-money.ts";

/** Test payers with an unexpected balance, each with that balance: `1 USDC`. */
export type UnfitPayers = ReadonlyMap<string, string>;

const payerNames = Object.keys(testPayers) as TestPayerName[];

/** No scenario that pays takes as much as one whole token. */
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

/** Finds the test payers that a chain has in the state which they stand for; none on a chain of others. */
export async function findTestPayers(
  ask: ReturnType<typeof askNode>,
  asset: Asset,
): Promise<ReadonlySet<TestPayerName>> {
  /** The word that a view returns; undefined where it fails. */
  async function read({ target: to, data }: ViewCall): Promise<bigint | undefined> {
    const { result } = await ask("eth_call", { to, data }, "latest");
    return isBytes32(result) ? BigInt(result) : undefined;
  }

  async function isAsItShouldBe(name: TestPayerName): Promise<boolean> {
    const { address, owner, approved }: TestPayer = testPayers[name];
    const [balance = 0n, blacklisted = 0n, allowance = 0n, { result: code }] = await Promise.all([
      read(balanceOf(asset.address, address)),
      read(isBlacklisted(asset.address, address)),
      read(allowanceOf({ asset: asset.address, payer: address })),
      ask("eth_getCode", address, "latest"),
    ]);
    const hasCode = isBytes(code) && code !== "0x";
    const isWallet = owner !== undefined && name !== "undeployedWallet";
    const isAllowed = { nothing: allowance === 0n, 1: allowance === 1n, all: allowance > 1n };
    return (
      hasCode === (isWallet || name === "delegated" || name === "hijacked") &&
      (blacklisted !== 0n) === (name === "blacklisted") &&
      (name === "empty" ? balance === 0n : balance >= enoughOf(asset) && isAllowed[approved ?? "all"])
    );
  }

  // Chains of others have none of them, and are asked once.
  if (!(await isAsItShouldBe("funded"))) return new Set();
  const found = await Promise.all(payerNames.map(isAsItShouldBe));
  return new Set(payerNames.filter((_, index) => found[index]));
}
