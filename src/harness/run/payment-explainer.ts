import type { RefusalContext } from "../../observe/explain/explanations.ts";
import type { PaymentChain } from "../../observe/studio/payment-detail.ts";
import { mostTold, type PaymentDetail } from "../../observe/timeline/payment-view.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import { noJournal, type PaymentReader } from "../journal/journal.ts";
import type { Chains } from "../setup/chains.ts";

export type PaymentExplainer = PaymentReader & {
  /** The state of payments on the local chains. */
  chain: PaymentChain;
  /** Returns the newest payments with all details, for a saved session; none without a timeline. */
  tell(): Promise<PaymentDetail[]>;
  /** Forgets cached chain state, after a reset of the chains. */
  forget(): void;
};

/** Creates an explainer. Its code is loaded on first use, so that it does not delay the start. */
export function createPaymentExplainer(
  chains: Chains["chains"],
  timeline: Timeline | undefined,
  context: RefusalContext,
): PaymentExplainer {
  let loaded: Promise<PaymentChain> | undefined;

  function asked(): Promise<PaymentChain> {
    loaded ??= import("../control/ask-chain.ts").then(({ createPaymentChain }) => createPaymentChain(chains));
    return loaded;
  }

  function known(): Timeline {
    if (timeline === undefined) throw noJournal();
    return timeline;
  }

  const chain: PaymentChain = {
    transaction: async (record) => (await asked()).transaction(record),
    authorizationUse: async (record) => (await asked()).authorizationUse(record),
    owed: async (...of) => (await asked()).owed?.(...of),
  };

  return {
    chain,
    async list() {
      const { newestSummaries } = await import("../../observe/timeline/summary.ts");
      return newestSummaries(known(), context);
    },
    async explain(id) {
      const { describePayment } = await import("../../observe/studio/payment-detail.ts");
      const record = known().find(id.toLowerCase());
      return record === undefined ? [] : (await describePayment(record, context, chain)).explanations;
    },
    async tell() {
      const { describeNewest } = await import("../../observe/studio/payment-detail.ts");
      return timeline === undefined ? [] : describeNewest(timeline, context, mostTold);
    },
    forget() {
      loaded = undefined;
    },
  };
}
