import type { KeptAnswer } from "../../ledger/ledger.ts";
import { noTransaction, type Settlement } from "../../ledger/settlement.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { AnswerExtra } from "../../protocol/write-answers.ts";
import type { SettleablePayment } from "./payment.ts";

/**
 * The outcome of a settle.
 * - `success` is handed over exactly once: the responder calls `delivered`, or `lost` if the answer could not be
 *   written. Until then, no other request gets this success. `transaction` is empty if nothing was to be taken;
 *   `amount` is the amount taken from a payment that allowed more.
 * - `pending`: signed and on its way, with its hash; the right to answer has already been given up.
 */
export type SettleResult =
  | { kind: "invalid"; invalid: Invalid }
  | ({
      kind: "success";
      transaction: Hex | "";
      amount?: bigint | undefined;
      delivery: Delivery;
    } & AnswerExtra)
  | { kind: "pending"; transaction: Hex };

/** Tracks one success on its way to the caller. */
export type Delivery = {
  /**
   * Returns true if the success may still be given; call it right before the last byte of the answer. False if this
   * process was suspended and another request has taken the right to answer meanwhile.
   */
  isDue(): Promise<boolean>;
  /** Call this once the answer was written. `kept` is stored, and given again under its `Idempotency-Key`. */
  delivered(kept?: KeptAnswer): Promise<void>;
  /** Call this if the answer could not be written: the next identical request gets it. */
  lost(): Promise<void>;
};

/** For a success that was delivered before and is given again: it does not matter if it arrives. */
export const alreadyDelivered: Delivery = {
  isDue: () => Promise.resolve(true),
  delivered: () => Promise.resolve(),
  lost: () => Promise.resolve(),
};

export function refuse(invalid: Invalid): SettleResult {
  return { kind: "invalid", invalid };
}

/** The success of a settled payment. */
export function successOf(
  { transactionHash, amount }: Settlement,
  { takesLess }: Pick<SettleablePayment, "takesLess">,
): Omit<Extract<SettleResult, { kind: "success" }>, "delivery"> {
  const transaction = transactionHash === noTransaction ? "" : transactionHash;
  return { kind: "success", transaction, ...(takesLess && { amount }) };
}
