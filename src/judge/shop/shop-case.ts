import type { NetworkRegistry } from "../../protocol/networks.ts";
import type { FacilitatorLine } from "../scene/facilitator-line.ts";
import type { CasePayer } from "../scene/payers.ts";
import type { Deviation } from "./payment.ts";
import type { Answer } from "./send.ts";
import type { Terms } from "./terms.ts";

/** A buyer, or a facilitator, that a shop has to cope with. */
export type ShopCase = {
  name: string;
  /** What is done to the shop. */
  situation: string;
  /** What a good shop does. */
  good: string;
  run(buyer: ShopBuyer): Promise<void>;
};

/** What a case can do. */
export type ShopBuyer = {
  readonly payer: CasePayer;
  readonly terms: Terms;
  readonly knownNetworks: NetworkRegistry;
  readonly line: FacilitatorLine;
  /** The URL of something else that the shop sells; undefined when none is known. */
  readonly otherUrl: string | undefined;
  /** Signs what the shop asks for, or something else. */
  sign(deviation?: Deviation, terms?: Terms): Promise<Record<string, string>>;
  /** Sends a request, and remembers the answer. A 2xx counts as service. */
  send(
    headers?: Record<string, string>,
    options?: { url?: string | undefined; breakOffAfterMs?: number },
  ): Promise<Answer | undefined>;
  /** Notes what is wrong with an answer. */
  complain(problem: string): void;
  /** Ends the case: it cannot be tried here. */
  skip(why: string): never;
  /** Moves the chain's time. */
  advanceTime(seconds: number): Promise<void>;
  /** Transactions that have moved the buyer's money so far. */
  transactions(): Promise<readonly string[]>;
};
