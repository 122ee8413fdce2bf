import type { NetworkName } from "../../protocol/networks.ts";
import type { ShopResult } from "../shop/run-shop-case.ts";
import { shopVerdicts } from "../shop/shop-verdict.ts";
import { type Finding, worstFirst, writeTransfers } from "./finding.ts";

/** The findings on a shop, worst first. */
export function reportShop(results: readonly ShopResult[], network: NetworkName): Finding[] {
  return worstFirst(results, shopVerdicts).map(({ tested, verdict, transfers, ...result }) => ({
    ...result,
    name: tested.name,
    network,
    verdict,
    verdictText: shopVerdicts[verdict],
    isGood: verdict === "good" || verdict === "not_run",
    situation: tested.situation,
    safe: tested.good,
    transfers: writeTransfers(transfers),
  }));
}
