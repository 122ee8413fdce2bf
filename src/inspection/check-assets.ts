import { selector } from "../chain/contract/calldata.ts";
import { callViews, readViews } from "../chain/view-calls.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { expectAnswer } from "../deploy/expect-answer.ts";
import { domainSeparator } from "../protocol/authorization.ts";
import { sameAddress } from "../protocol/hex.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { Check } from "./check.ts";

const readGas = 100_000;

/** Compares `DOMAIN_SEPARATOR()` of every token with what its name and version come to. */
export async function checkAssets(rpc: Pick<Rpc, "ask">, network: NetworkConfig): Promise<readonly Check[]> {
  const { assets, chainId } = network;
  const data = selector("DOMAIN_SEPARATOR()");
  const [answer] = await rpc.ask([
    callViews(
      assets.map(({ address }) => ({ target: address, data })),
      readGas,
    ),
  ]);
  const { results } = expectAnswer("the tokens' domains", answer, (result) =>
    readViews(result, assets.length),
  );
  return assets.map((asset, index): Check => {
    const { address, name, version } = asset;
    const domain = `name "${name}", version "${version}"`;
    const separator = results[index]?.word;
    if (separator === undefined) {
      return {
        name: "asset",
        status: "failed",
        detail: `there is no EIP-3009 token at ${address}`,
        advice: sameAddress(address, network.usdc.address)
          ? "USDC must be there; is this the chain that it says it is?"
          : "Correct its address in ASSETS.",
        fatal: true,
      };
    }
    if (!sameAddress(separator, domainSeparator(asset, chainId))) {
      return {
        name: "asset",
        status: "failed",
        detail: `${address} signs for another domain than ${domain}`,
        advice: sameAddress(address, network.usdc.address)
          ? "That is not the USDC of this network; is this the chain that it says it is?"
          : "Its name and version in ASSETS must be those of the token's EIP-712 domain.",
        fatal: true,
      };
    }
    return { name: "asset", status: "ok", detail: `${address} signs for ${domain}` };
  });
}
