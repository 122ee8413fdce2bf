import { encodeFunctionData, erc20Abi } from "viem";
import { expect, test } from "vitest";
import { builtInNetworks } from "../../protocol/networks.ts";
import { payerOf } from "./offers.ts";
import { openScene } from "./scene.ts";

test("payers of cases that run together all get money of the second token", async () => {
  await using scene = await openScene({
    network: "base-sepolia",
    knownNetworks: builtInNetworks,
    hasOtherNetwork: true,
  });
  const { address: token } = await scene.otherAsset();
  const payers = Array.from({ length: 300 }, (_, index) => payerOf(index, "one of many"));
  await Promise.all(payers.map((payer) => scene.fund(payer, { everywhere: true })));

  const data = encodeFunctionData({
    abi: erc20Abi,
    functionName: "transfer",
    args: [scene.recipient, 1n],
  });
  const spent = await Promise.all(payers.map(({ address }) => scene.sendAs(address, token, data)));
  expect(spent).not.toContain(undefined);
});
