import type { Offer } from "../scene/offers.ts";
import type { Scene } from "../scene/scene.ts";
import type { PaidVisit, Visit } from "./visit.ts";

/** A shop with which a client may pay twice, pay for nothing, or pay too much. */
export type ClientCase = {
  name: string;
  /** What the shop does. */
  shop: string;
  /** What a safe client does. */
  safe: string;
  /** How many of the client run at once. */
  runs?: number;
  /** Whether the shop takes its time: such a case starts early. */
  isSlow?: boolean;
  /** A facilitator and a chain of its own, where all others would be disturbed. */
  own?: { settleWaitMs?: number; aheadSeconds?: number };
  /** What is offered; by default the usual. */
  offers?(scene: Scene): Promise<readonly Offer[]>;
  /** What comes back without a payment; by default the offers. */
  unpaid?(visit: Visit): Promise<void>;
  /** What comes back with a payment; by default the shop settles it and serves. */
  paid?(visit: PaidVisit, options: { slowMs: number }): Promise<void>;
};
