import { expectAnswer } from "../../chain/deploy/endpoints.ts";
import { callViews, codeOf, readViews, viewGas } from "../../chain/views.ts";
import { permit2Of } from "../../methods/permit2/on-chain/permit2-state.ts";
import { exactProxyAddress, permit2Address, uptoProxyAddress } from "../../methods/permit2/permit.ts";
import { type Address, addressWord, sameAddress } from "../../protocol/hex.ts";
import { type Asset, isPaidBy } from "../../protocol/networks.ts";
import { type Check, failed, type NetworkCheck, ok, warning } from "./check.ts";

/** The name of this check, by which readiness finds what it says. */
export const permit2CheckName = "Permit2";

/** The proxies of x402, which payers sign for, by the scheme. */
const proxies: readonly (readonly [scheme: string, proxy: Address])[] = [
  ["exact", exactProxyAddress],
  ["upto", uptoProxyAddress],
];

/**
 * Checks that Permit2 stands where public clients know it, and that the proxies of x402 stand there too and use it, where an asset
 * may be paid so. Nothing else of the network depends on it.
 */
export const permit2Check: NetworkCheck = {
  name: permit2CheckName,
  required: false,
  calls({ network: { assets } }) {
    if (!assets.some((asset) => isPaidBy(asset, "permit2"))) return [];
    return [callViews([codeOf(permit2Address), ...proxies.map(([, proxy]) => permit2Of(proxy))], viewGas)];
  },
  read([answer], { network: { assets } }) {
    if (answer === undefined) return [];
    const { results } = expectAnswer("Permit2", answer, (result) => readViews(result, 1 + proxies.length));
    const [permit2, ...ofProxies] = results;
    if (permit2?.codeHash == null) {
      return [missing(assets, `there is no Permit2 at ${permit2Address}: no payment by Permit2 settles`)];
    }
    const bad = proxies.flatMap(([scheme, proxy], index) => {
      const { codeHash = null, word } = ofProxies[index] ?? {};
      if (word !== undefined && sameAddress(word, `0x${addressWord(permit2Address)}`)) return [];
      const found =
        codeHash === null
          ? "there is no proxy of x402"
          : "what is there is no proxy of x402 that uses Permit2,";
      return [missing(assets, `${found} at ${proxy}: no payment by Permit2 of scheme ${scheme} settles`)];
    });
    const good = `${permit2Address} is there, and both proxies of x402 use it`;
    return bad.length === 0 ? [ok(permit2CheckName, good)] : bad;
  },
};

/** It fails where an asset can be paid in no other way. */
function missing(assets: readonly Asset[], detail: string): Check {
  const advice =
    "Anybody can deploy it there (by CREATE2). Until then verify answers permit2_proxy_not_deployed to such payments; those by EIP-3009 go on.";
  const stuck = assets.filter((asset) => !isPaidBy(asset, "eip3009"));
  if (stuck.length === 0) return warning(permit2CheckName, detail, advice);
  const names = stuck.map(({ name }) => name).join(", ");
  return failed(permit2CheckName, `${detail}, and ${names} can be paid in no other way`, { advice });
}
