/** What became of one case, for reports of every form. */
export type Finding = {
  name: string;
  network: string;
  /** One of a closed set. */
  verdict: string;
  verdictText: string;
  isGood: boolean;
  /** What was done to the software under judgement. */
  situation: string;
  /** What is safe there. */
  safe: string;
  /** What moved from the payer, on chain; amounts in the token's smallest unit. */
  transfers: readonly { network: string; token: string; to: string; amount: string; transaction: string }[];
  /** How often what is sold was had. */
  services: number;
  /** Every request and its answer, in order. */
  exchanges: readonly string[];
  /** Of each payment in the studio, where there is one. */
  links: readonly string[];
  notes: readonly string[];
  tookMs: number;
};
