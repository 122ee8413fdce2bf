import type { TokenTransfer } from "../scene/transfers.ts";

/** The result of one case, for reports in every format. */
export type Finding = {
  name: string;
  network: string;
  /** One of a closed set. */
  verdict: string;
  verdictText: string;
  isGood: boolean;
  /** What was done to the judged program. */
  situation: string;
  /** What is safe there. */
  safe: string;
  /** What moved from the payer, on chain; amounts in the token's smallest unit. */
  transfers: readonly { network: string; token: string; to: string; amount: string; transaction: string }[];
  /** How often the goods were delivered. */
  services: number;
  /** Every request and its answer, in order. */
  exchanges: readonly string[];
  /** Of each payment in the studio, where there is one. */
  links: readonly string[];
  notes: readonly string[];
  tookMs: number;
};

/** Sorts results by their verdicts, of which the worst comes first. */
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
