import type { Exchange } from "../client/case-shop.ts";
import { clientVerdicts, isGoodVerdict } from "../client/client-verdict.ts";
import type { ClientResult, ClientRun } from "../client/run-client-case.ts";
import { describePayment } from "../scene/received-payment.ts";
import { type Finding, worstFirst, writeTransfers } from "./finding.ts";

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
