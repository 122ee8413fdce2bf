import { KitError } from "../../errors.ts";
import type { Hex } from "../../protocol/hex.ts";
import { describePayment } from "./describe-payment.ts";
import type { JournalStore } from "./journal.ts";
import type { PaymentJournal } from "./payment-journal.ts";

/** Reads a journal, of this process or of another. */
export type JournalReader = {
  payment(id: Hex): Promise<PaymentJournal | undefined>;
  payments(): Promise<readonly Hex[]>;
};

/** What the service of a harness did about each payment since the start, or the last reset. */
export type Journal = {
  /**
   * All about one payment, as data.
   *
   * @param id its settlement id
   * @throws {KitError} when no request has named the payment, or no journal is kept
   */
  payment(id: Hex): Promise<PaymentJournal>;
  /** The ids of the payments that were verified or settled, in that order. */
  payments(): Promise<readonly Hex[]>;
  /** The same as text for people: of one payment, or of all. */
  describe(id?: Hex): Promise<string>;
};

/** Reads a store, if there is one. */
export function readerOf(store: JournalStore | undefined): JournalReader {
  const kept = () => {
    if (store !== undefined) return store;
    throw new KitError("This harness keeps no journal", {
      hints: ["Start it with createHarness({ journal: true }), or `x402-kit up --journal`"],
    });
  };
  return {
    payment: async (id) => kept().payment(id),
    payments: async () => kept().payments(),
  };
}

/** A journal for people, out of one that can be read. */
export function createJournal(reader: JournalReader): Journal {
  async function payment(id: Hex): Promise<PaymentJournal> {
    const found = await reader.payment(id);
    if (found !== undefined) return found;
    throw new KitError(`The journal knows no payment ${id}`, {
      hints: ["No request has named it since the start, or since the last reset, as far as it could be read"],
    });
  }
  return {
    payment,
    payments: () => reader.payments(),
    async describe(id) {
      const ids = id === undefined ? await reader.payments() : [id];
      return (await Promise.all(ids.map(async (each) => describePayment(await payment(each))))).join("\n\n");
    },
  };
}
