import type { LoggedPayment } from "./payment-log.ts";
import type { TransactionView } from "./transaction-view.ts";

/** How an authorization came to be used, or cancelled, as the logs of its token say. */
export type AuthorizationUse = {
  readonly kind: "used" | "cancelled";
  readonly transaction: string;
  readonly blockNumber: bigint;
  /** The time of its block, unix seconds. */
  readonly timestamp: bigint;
  /** Who sent the transaction, and to which contract; null where the node does not say. */
  readonly sender: string | null;
  readonly to: string | null;
  /** Where the value went, and how much; undefined where it was cancelled. */
  readonly moved: { readonly to: string; readonly value: bigint } | undefined;
};

/** What the chain of a payment says of it. It is asked when a person looks at the payment, and for no verdict. */
export type PaymentChain = {
  /**
   * The newest transaction that carried the payment.
   *
   * @throws {KitError} when there is none, or the node does not know it
   */
  transaction(payment: LoggedPayment): Promise<TransactionView>;
  /** How its authorization was used; undefined where that could not be found out soon. Never throws. */
  authorizationUse(
    payment: Pick<LoggedPayment, "request" | "summary">,
  ): Promise<AuthorizationUse | undefined>;
  /** The chain's time, unix seconds, at a time in unix milliseconds, where blocks and their times are remembered. */
  timeAt?(network: string, at: number): bigint | undefined;
};
