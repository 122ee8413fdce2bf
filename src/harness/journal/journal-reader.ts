import type { PaymentSummary } from "../../observe/studio/payment-view.ts";
import type { Hex } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { aText, requireArgument } from "../../util/given.ts";
import { describeOtherRequests, describePayment } from "./describe-payment.ts";
import type { JournalStore } from "./journal.ts";
import type { OtherRequest, PaymentJournal } from "./payment-journal.ts";

/** Reads a journal, of this process or of another. */
export type JournalReader = {
  payment(id: Hex): Promise<PaymentJournal | undefined>;
  payments(): Promise<readonly Hex[]>;
  otherRequests(): Promise<readonly OtherRequest[]>;
};

/** What a harness's service did for each payment since the start or the last reset. */
export type Journal = {
  /**
   * All about one payment, as data.
   *
   * @param id its settlement id, or the hash of a transaction with it
   * @throws {KitError} when there was no request with the payment, or no journal is kept
   */
  payment(id: Hex): Promise<PaymentJournal>;
  /** The ids of the payments that were verified or settled, in that order. */
  payments(): Promise<readonly Hex[]>;
  /** Requests without a readable payment: with an unknown route, a wrong API key, or another body. */
  otherRequests(): Promise<readonly OtherRequest[]>;
  /** The same as text, for one payment or for all requests. */
  describe(id?: Hex): Promise<string>;
};

/** Reads the store of payments as the studio does. */
export type PaymentReader = {
  /** Why a payment was refused, by its id or the hash of its transaction. */
  explain(id: Hex): Promise<PaymentJournal["explanations"]>;
  /** What became of each payment, newest first. */
  list(): Promise<readonly PaymentSummary[]>;
};

/** Reads a store, if there is one. */
export function readerOf(
  store: JournalStore | undefined,
  { explain }: Pick<PaymentReader, "explain">,
): JournalReader {
  const kept = () => {
    if (store !== undefined) return store;
    throw noJournal();
  };
  return {
    async payment(id) {
      const payment = kept().payment(id);
      return payment && { ...payment, explanations: await explain(id) };
    },
    payments: async () => kept().payments(),
    otherRequests: async () => kept().otherRequests(),
  };
}

export const noJournal = () =>
  new KitError("This harness keeps no journal", {
    hints: ["Start it with createHarness({ journal: true }), or `x402-kit up --journal`"],
  });

/** A journal on top of a reader. */
export function createJournal(reader: JournalReader): Journal {
  async function payment(id: Hex): Promise<PaymentJournal> {
    requireArgument("id", id, aText);
    const found = await reader.payment(id);
    if (found !== undefined) return found;
    throw new KitError(`The journal knows no payment ${id}`, {
      hints: ["No request has named it since the start, or since the last reset, as far as it could be read"],
    });
  }
  return {
    payment,
    payments: () => reader.payments(),
    otherRequests: () => reader.otherRequests(),
    async describe(id) {
      if (id !== undefined) return describePayment(await payment(id));
      const ids = await reader.payments();
      const others = await reader.otherRequests();
      // One after the other: an explanation may ask the chain, which does not answer many at a time.
      const stories: string[] = [];
      for (const each of ids) stories.push(describePayment(await payment(each)));
      return [...stories, ...(others.length === 0 ? [] : [describeOtherRequests(others)])].join("\n\n");
    },
  };
}
