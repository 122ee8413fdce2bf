import type { Offer } from "../scene/offers.ts";
import type { Scene } from "../scene/scene.ts";
import type { PaidVisit, Visit } from "./visit.ts";

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
