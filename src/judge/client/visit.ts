import type { Offer } from "../scene/offers.ts";
import type { CasePayer } from "../scene/payers.ts";
import type { ReceivedPayment } from "../scene/received-payment.ts";
import type { Scene } from "../scene/scene.ts";

/** The outcome of a payment at the shop's facilitator. */
export type Settled = { success: boolean; transaction: string; reason: string; isPending: boolean };

/** Where the connection of an answer is reset. */
export type ResetPlace = "instead of an answer" | "before the body" | "in the body" | "after the body";

/** One request of the judged client, and what a shop can do with it. */
export type Visit = {
  readonly scene: Scene;
  readonly payer: CasePayer;
  /** The last part of the path. */
  readonly path: string;
  /** Asks for a payment: by default for the usual one, because there is none. */
  ask(options?: {
    error?: string;
    offers?: readonly Offer[];
    headers?: Record<string, string>;
  }): Promise<void>;
  /** Does something later, which the case waits for before it ends. */
  later(delayMs: number, work: () => Promise<unknown>): void;
  /** Sends any answer. */
  send(status: number, headers?: Record<string, string>, body?: string): Promise<void>;
  /** Hands out the goods for a settled payment. `receipt` takes the place of the receipt's header. */
  serve(settled: Settled, options?: { receipt?: string; reset?: ResetPlace }): Promise<void>;
};

/** A request that carries a payment. */
export type PaidVisit = Visit & {
  readonly payment: ReceivedPayment;
  /** Whether no payment had come before. */
  readonly isFirst: boolean;
  /** How often this payment had come before. */
  readonly repeats: number;
  /** How many other payments had come before. */
  readonly othersBefore: number;
  /** Settles it, for real: at once the first time, and with the same outcome afterwards. */
  settle(): Promise<Settled>;
  /** Settles it, and loses the facilitator's answer. */
  settleAndLoseAnswer(): Promise<void>;
  /** What a good shop does: settles, and serves or asks again. */
  sell(): Promise<void>;
};
