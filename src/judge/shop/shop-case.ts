import type { NetworkRegistry } from "../../protocol/networks.ts";
import type { FacilitatorLine } from "../scene/facilitator-line.ts";
import type { CasePayer } from "../scene/payers.ts";
import type { Deviation } from "./payment.ts";
import type { Answer } from "./send.ts";
import type { Terms } from "./terms.ts";

/** A misbehaving buyer or facilitator, and the good reaction of a shop. */
export type ShopCase = {
  name: string;
  /** What happens to the shop. */
  situation: string;
  /** What a good shop does. */
  good: string;
  /** Whether the shop cannot serve without its facilitator. */
  needsFacilitator?: boolean;
  run(buyer: ShopBuyer): Promise<void>;
};

/** What a case can do. */
export type ShopBuyer = {
  readonly payer: CasePayer;
  readonly terms: Terms;
  readonly knownNetworks: NetworkRegistry;
  readonly line: FacilitatorLine;
  /** The URL of a second resource of the shop; undefined when none is known. */
  readonly otherUrl: string | undefined;
  /** Signs a payment for the shop's terms, or with deviations. */
  sign(deviation?: Deviation, terms?: Terms): Promise<Record<string, string>>;
  /** Sends a request, and remembers the answer. A 2xx counts as service. */
  send(
    headers?: Record<string, string>,
    options?: { url?: string | undefined; breakOffAfterMs?: number },
  ): Promise<Answer | undefined>;
  /** Notes what is wrong with an answer. */
  complain(problem: string): void;
  /** Ends the case as not run. */
  skip(why: string): never;
  /** Moves the chain's time. */
  advanceTime(seconds: number): Promise<void>;
  /** The transactions that have transferred the buyer's tokens so far. */
  transactions(): Promise<readonly string[]>;
};
