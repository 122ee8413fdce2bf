import type { Invalid } from "../protocol/catalogue.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";

/* Payments that can be asked for again and again, such as claims, and the channels that only one organization may use. */

/** The earlier requests of an organization. */
export type KnownActions = {
  /** Returns true if a request was refused, or has its answer: the same is a new one then. */
  isClosed(payment: SignedPayment): boolean | Promise<boolean>;
  /** The newest settlements for the same receiver. */
  recent(): readonly RecentAction[] | Promise<readonly RecentAction[]>;
};

type RecentAction = {
  method: string;
  asset: Address;
  nonce: Hex;
  isOpen: boolean;
  blockNumber: bigint | null;
};

/** Channels by their ids, or all of a receiver for a token. */
export type OwnedChannels = {
  ids: readonly Hex[];
  /** True if the payment may open one of them. */
  opens: boolean;
  receiver?: { receiver: Address; token: Address };
  /** The refusal for other organizations. */
  refuse(): Invalid;
};
