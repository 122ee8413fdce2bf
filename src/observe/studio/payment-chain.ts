import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import type { LoggedPayment } from "./payment-log.ts";
import type { TransactionView } from "./transaction-view.ts";

/** What the chain of a payment says of it. It is asked when a person looks at the payment, and for no verdict. */
export type PaymentChain = {
  /**
   * The newest transaction that carried the payment.
   *
   * @throws {KitError} when there is none, or the node does not know it
   */
  transaction(payment: LoggedPayment): Promise<TransactionView>;
  /** How its authorization was used; undefined where that could not be found out soon. Never throws. */
  authorizationUse(payment: Pick<LoggedPayment, "request" | "summary">): Promise<PaymentUse | undefined>;
  /** The chain's time, unix seconds, at a time in unix milliseconds, where blocks and their times are remembered. */
  timeAt?(network: string, at: number): bigint | undefined;
};
