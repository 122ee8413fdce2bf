import type { Exchange } from "../client/case-shop.ts";
import { clientVerdicts, clientVerdictTexts, isGoodVerdict } from "../client/client-verdict.ts";
import type { ClientResult, ClientRun } from "../client/run-client-case.ts";
import type { Finding } from "./finding.ts";

/** What became of each case of a client, worst first. */
export function reportClient(results: readonly ClientResult[]): Finding[] {
  const networks = new Set(results.map(({ network }) => network));
  return results
    .toSorted((a, b) => clientVerdicts.indexOf(a.verdict) - clientVerdicts.indexOf(b.verdict))
    .map((result) => {
      const { tested, network, verdict, transfers, runs, exchanges, links, tookMs } = result;
      return {
        name: networks.size > 1 ? `${tested.name} (${network})` : tested.name,
        network,
        verdict,
        verdictText: clientVerdictTexts[verdict],
        isGood: isGoodVerdict(verdict),
        situation: tested.shop,
        safe: tested.safe,
        transfers: transfers.map(({ amount, ...transfer }) => ({ ...transfer, amount: `${amount}` })),
        services: runs.filter(({ served }) => served).length,
        exchanges: exchanges.map(describeExchange),
        links,
        notes: runs.flatMap(notesOf),
        tookMs,
      };
    });
}

function describeExchange({ atMs, request, payment, answer }: Exchange): string {
  const at = `+${(atMs / 1_000).toFixed(1)} s`;
  const paid =
    payment === undefined
      ? "without payment"
      : `with payment ${payment.number}: ${payment.amount} to ${payment.to.slice(0, 8)}… on ${payment.network}`;
  return `${at}  ${request} ${paid} → ${answer}`;
}

/** Where what the client says is not what it did. */
function notesOf({ end, served }: ClientRun): string[] {
  if (end === undefined) return ["it was ended when its time was over"];
  if (served && end.code !== 0) return [`it got the goods, and exited with ${end.code ?? end.signal}`];
  if (!served && end.code === 0) return ["it got nothing, and exited with 0"];
  return [];
}
