import type { NetworkName } from "../../protocol/networks.ts";
import type { ShopResult } from "../shop/run-shop-case.ts";
import { shopVerdicts, shopVerdictTexts } from "../shop/shop-verdict.ts";
import type { Finding } from "./finding.ts";

/** What became of each case of a shop, worst first. */
export function reportShop(results: readonly ShopResult[], network: NetworkName): Finding[] {
  return results
    .toSorted((a, b) => shopVerdicts.indexOf(a.verdict) - shopVerdicts.indexOf(b.verdict))
    .map(({ tested, verdict, transfers, services, exchanges, links, notes, tookMs }) => ({
      name: tested.name,
      network,
      verdict,
      verdictText: shopVerdictTexts[verdict],
      isGood: verdict === "good" || verdict === "not_run",
      situation: tested.situation,
      safe: tested.good,
      transfers: transfers.map(({ amount, ...transfer }) => ({ ...transfer, amount: `${amount}` })),
      services,
      exchanges,
      links,
      notes,
      tookMs,
    }));
}
