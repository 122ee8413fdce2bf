import type { CasePayer, Offer, ReceivedPayment } from "../scene/offers.ts";
import type { Scene } from "../scene/scene.ts";

/** A misbehaving shop: a careless client pays twice, pays for nothing, or pays too much. */
export type ClientCase = {
  name: string;
  /** What the shop does. */
  shop: string;
  /** What a safe client does. */
  safe: string;
  /** How many processes of the client run at once. */
  runs?: number;
  /** Whether the shop answers slowly; such a case is started early. */
  isSlow?: boolean;
  /** A facilitator and a chain for this case only, where it would disturb the others. */
  own?: { settleWaitMs?: number; aheadSeconds?: number };
  /** The offers of the 402; by default the scene's one offer. */
  offers?(scene: Scene): Promise<readonly Offer[]>;
  /** The answer to a request without payment; by default a 402 with the offers. */
  unpaid?(visit: Visit): Promise<void>;
  /** The answer to a request with payment; by default the shop settles it and serves. */
  paid?(visit: PaidVisit, options: { slowMs: number }): Promise<void>;
};

/** The outcome of a payment at the shop's facilitator. */
export type Settled = { success: boolean; transaction: string; reason: string; isPending: boolean };

/** At which point of an answer the connection is reset. */
export type ResetPlace = "instead of an answer" | "before the body" | "in the body" | "after the body";

/** One request of the judged client, with the possible reactions of a shop. */
export type Visit = {
  readonly scene: Scene;
  readonly payer: CasePayer;
  /** The last part of the path. */
  readonly path: string;
  /** Answers 402: by default with the usual offer, because payment is required. */
  ask(options?: {
    error?: string;
    offers?: readonly Offer[];
    headers?: Record<string, string>;
  }): Promise<void>;
  /** Runs something later; the case does not end before it. */
  later(delayMs: number, work: () => Promise<unknown>): void;
  /** Sends any answer. */
  send(status: number, headers?: Record<string, string>, body?: string): Promise<void>;
  /** Delivers the goods for a settled payment. `receipt` replaces the value of the receipt header. */
  serve(settled: Settled, options?: { receipt?: string; reset?: ResetPlace }): Promise<void>;
};

/** A request that carries a payment. */
export type PaidVisit = Visit & {
  readonly payment: ReceivedPayment;
  /** Whether this is the first payment of the case. */
  readonly isFirst: boolean;
  /** How often this payment was sent before. */
  readonly repeats: number;
  /** How many other payments were sent before. */
  readonly othersBefore: number;
  /** Settles it on chain. Repeated calls return the same outcome. */
  settle(): Promise<Settled>;
  /** Settles it, but the facilitator's answer is lost. */
  settleAndLoseAnswer(): Promise<void>;
  /** Settles it, then serves, or answers 402 if that failed, as a good shop does. */
  sell(): Promise<void>;
};
