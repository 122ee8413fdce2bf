import type { TokenTransfer } from "../scene/transfers.ts";

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
