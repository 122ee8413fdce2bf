import { expectAnswer } from "../../chain/deploy/expect-answer.ts";
import { callViews, readViews } from "../../chain/view-calls.ts";
import { decimalsOf, domainSeparatorOf, viewGas } from "../../chain/views.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import { domainSeparator } from "../../methods/exact-eip3009/authorization.ts";
import { type Hex, sameAddress } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { type Check, failed, type NetworkCheck, ok, warning } from "./check.ts";

/** Compares `DOMAIN_SEPARATOR()` and `decimals()` of every token with its configured name, version and decimals. */
export const assetsCheck: NetworkCheck = {
  name: "asset",
  required: true,
  calls: ({ network }) => [
    callViews(
      [
        ...network.assets.map(({ address }) => domainSeparatorOf(address)),
        ...network.assets.map(({ address }) => decimalsOf(address)),
      ],
      viewGas,
    ),
  ],
  read([answer], { network }) {
    const { assets } = network;
    const { results } = expectAnswer("the tokens' domains", answer, (result) =>
      readViews(result, 2 * assets.length),
    );
    return assets.map((asset, index) => {
      const check = checkAsset(network, asset, results[index]?.word);
      return check.status === "ok"
        ? checkDecimals(check, asset, results[assets.length + index]?.word)
        : check;
    });
  },
};

/** They decide nothing but how amounts are shown to people. A token that does not say them is left as it is. */
function checkDecimals(good: Check, { decimals }: Pick<Asset, "decimals">, word: Hex | undefined): Check {
  const found = word === undefined ? undefined : BigInt(word);
  if (found === undefined || found === BigInt(decimals)) return good;
  return warning(
    "asset",
    `${good.detail}, but has ${found} decimals, not ${decimals} as configured`,
    "Correct its decimals in ASSETS or the network file: amounts are shown with them.",
  );
}

function checkAsset({ chainId, usdc }: NetworkConfig, asset: Asset, separator: Hex | undefined): Check {
  const { address, name, version } = asset;
  const domain = `name "${name}", version "${version}"`;
  const isUsdc = sameAddress(address, usdc.address);
  if (separator === undefined) {
    const advice = isUsdc
      ? "USDC must be there; is this the chain that it says it is?"
      : "Correct its address in ASSETS.";
    return failed("asset", `there is no EIP-3009 token at ${address}`, { advice, fatal: true });
  }
  if (!sameAddress(separator, domainSeparator(asset, chainId))) {
    const advice = isUsdc
      ? "That is not the USDC of this network; is this the chain that it says it is?"
      : "Its name and version in ASSETS must be those of the token's EIP-712 domain.";
    const detail = `the token ${address} signs for another domain than ${domain}`;
    return failed("asset", detail, { advice, fatal: true });
  }
  return ok("asset", `${address} signs for ${domain}`);
}
