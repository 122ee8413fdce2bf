import type { NetworkName } from "../../protocol/networks.ts";
import type { Exchange } from "../client/case-shop.ts";
import type { ClientResult, ClientRun } from "../client/run-client-case.ts";
import { clientVerdicts, isGoodVerdict } from "../client/run-client-case.ts";
import { describePayment } from "../scene/offers.ts";
import type { TokenTransfer } from "../scene/scene.ts";
import type { ShopResult } from "../shop/run-shop-case.ts";
import { shopVerdicts } from "../shop/run-shop-case.ts";

/** The result of one case, for reports in every format. */
export type Finding = {
  name: string;
  network: string;
  /** One of `clientVerdicts` or `shopVerdicts`. */
  verdict: string;
  verdictText: string;
  isGood: boolean;
  /** What happened to the judged program. */
  situation: string;
  /** What a good program does in this situation. */
  safe: string;
  /** Transfers from the payer on chain; amounts in the token's smallest unit. */
  transfers: readonly { network: string; token: string; to: string; amount: string; transaction: string }[];
  /** How often the goods were delivered. */
  services: number;
  /** Every request and its answer, in order. */
  exchanges: readonly string[];
  /** Links to the payments in the studio, if it runs. */
  links: readonly string[];
  notes: readonly string[];
  tookMs: number;
};

/** Sorts results by verdict, worst first. */
export function worstFirst<Verdict extends string, Result extends { verdict: Verdict }>(
  results: readonly Result[],
  verdicts: Readonly<Record<Verdict, string>>,
): Result[] {
  const order = Object.keys(verdicts);
  return results.toSorted((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
}

/** Transfers with their amounts as text. */
export function writeTransfers(transfers: readonly TokenTransfer[]): Finding["transfers"] {
  return transfers.map(({ amount, ...transfer }) => ({ ...transfer, amount: `${amount}` }));
}

/** The findings on a client, worst first. */
export function reportClient(results: readonly ClientResult[]): Finding[] {
  const networks = new Set(results.map(({ network }) => network));
  return worstFirst(results, clientVerdicts).map((result) => {
    const { tested, network, verdict, transfers, runs, exchanges, links, tookMs } = result;
    return {
      name: networks.size > 1 ? `${tested.name} (${network})` : tested.name,
      ...{ network, verdict, links, tookMs },
      verdictText: clientVerdicts[verdict],
      isGood: isGoodVerdict(verdict),
      situation: tested.shop,
      safe: tested.safe,
      transfers: writeTransfers(transfers),
      services: runs.filter(({ served }) => served).length,
      exchanges: exchanges.map(describeExchange),
      notes: runs.flatMap(notesOf),
    };
  });
}

function describeExchange({ atMs, request, payment, answer }: Exchange): string {
  const paid = payment === undefined ? "without payment" : describePayment(payment);
  return `+${(atMs / 1_000).toFixed(1)} s  ${request} ${paid} → ${answer}`;
}

/** Notes where the exit code contradicts the facts. */
function notesOf({ end, served }: ClientRun): string[] {
  if (end === undefined) return ["it was ended when its time was over"];
  if (served && end.code !== 0) return [`it got the goods, and exited with ${end.code ?? end.signal}`];
  if (!served && end.code === 0) return ["it got nothing, and exited with 0"];
  return [];
}

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
