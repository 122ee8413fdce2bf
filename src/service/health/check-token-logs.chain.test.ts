import { expect, test } from "vitest";
import { useComposition } from "../../../test/support/use-composition.ts";
import { openEndpoints } from "../../chain/deploy/endpoints.ts";
import { mockOddTokenDeployedBytecode } from "../../contracts/mockTokens.ts";
import type { Asset } from "../../protocol/networks.ts";
import { checkTokenLogs } from "./check-token-logs.ts";

const composition = useComposition();

const odd: Asset = {
  address: "0x0dd0000000000000000000000000000000000dd0",
  name: "Odd",
  version: "1",
  decimals: 6,
};

async function statuses(assets: readonly Asset[], usdc: Asset): Promise<readonly string[]> {
  const network = { ...composition.configuration(), assets: [...assets], usdc };
  return (await checkTokenLogs(network, openEndpoints(network))).map(({ status }) => status);
}

test("doctor warns of a token with late logs, accepts one like USDC, and leaves a missing one to another check", async () => {
  const { asset, node } = composition.chain;
  expect(await statuses([odd], asset)).toEqual([]);
  await node.request("anvil_setCode", odd.address, mockOddTokenDeployedBytecode);
  expect(await statuses([asset, odd], asset)).toEqual(["warning"]);
  expect(await statuses([asset], odd)).toEqual(["ok"]);
});
