import type { KeptAnswer } from "../../ledger/ledger.ts";
import { noTransaction, type Settlement } from "../../ledger/settlement.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { AnswerExtra } from "../../protocol/write-answers.ts";
import type { SettleablePayment } from "./payment.ts";

/**
 * The outcome of a settle.
 * - `success` is to be handed over exactly once: the answering side calls `delivered`, or `lost` when the answer could
 *   not be written. Until one of them is called, no other request gets this success.
 *   `transaction` is empty where nothing was to be taken; `amount` is what was, of a payment that allowed more.
 * - `pending`: signed and on its way, with its hash; the right to the answer has been given up already.
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

/** The fate of one success on its way to the caller. */
export type Delivery = {
  /**
   * Returns true if the success may still be given; to be called right before the last byte of the answer. False if this process
   * was suspended, and another request has taken the right to answer meanwhile.
   */
  isDue(): Promise<boolean>;
  /** The answer was written. `kept` is stored, and given again under its `Idempotency-Key`. */
  delivered(kept?: KeptAnswer): Promise<void>;
  /** The answer could not be written: the next identical request gets it. */
  lost(): Promise<void>;
};

/** An answer that is given again is not handed over again: whether it arrives changes nothing. */
export const alreadyDelivered: Delivery = {
  isDue: () => Promise.resolve(true),
  delivered: () => Promise.resolve(),
  lost: () => Promise.resolve(),
};

export function refuse(invalid: Invalid): SettleResult {
  return { kind: "invalid", invalid };
}

/** The text about a settled payment. */
export function successOf(
  { transactionHash, amount }: Settlement,
  { takesLess }: Pick<SettleablePayment, "takesLess">,
): Omit<Extract<SettleResult, { kind: "success" }>, "delivery"> {
  const transaction = transactionHash === noTransaction ? "" : transactionHash;
  return { kind: "success", transaction, ...(takesLess && { amount }) };
}
