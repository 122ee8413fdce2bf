import type { PaymentChain } from "../../observe/studio/payment-detail.ts";
import type { PaymentLog } from "../../observe/studio/payment-log.ts";
import type { PaymentStore } from "../../observe/studio/payment-store.ts";
import type { Address } from "../../protocol/hex.ts";
import type { NetworkRegistry, NetworkTier } from "../../protocol/networks.ts";
import type { KnownTokens } from "../../protocol/token-units.ts";
import { noJournal, type PaymentReader } from "../journal/journal-reader.ts";
import type { Chains } from "../setup/chains.ts";

/** What explains payments of a harness. */
export type PaymentExplainer = PaymentReader & {
  /** What the local chains say of payments. */
  chain: PaymentChain;
  /** Forgets what the chains said, which have begun anew. */
  forget(): void;
  close(): void;
};

/** Makes an explainer; what it needs for that is loaded with the first question, and delays no start. */
export function createPaymentExplainer(
  chains: Chains["chains"],
  store: PaymentStore | undefined,
  context: {
    contracts: Readonly<Record<NetworkTier, Address>>;
    networks: NetworkRegistry | undefined;
    tokens: KnownTokens;
    hasOwnClock: () => boolean;
  },
): PaymentExplainer {
  let loaded: Promise<PaymentChain> | undefined;
  let log: PaymentLog | undefined;

  function asked(): Promise<PaymentChain> {
    loaded ??= import("../control/payment-chain.ts").then(({ createPaymentChain }) =>
      createPaymentChain(chains),
    );
    return loaded;
  }

  async function readLog(): Promise<PaymentLog> {
    if (store === undefined) throw noJournal();
    const { createPaymentLog } = await import("../../observe/studio/payment-log.ts");
    log ??= createPaymentLog(store, context);
    return log;
  }

  const chain: PaymentChain = {
    transaction: async (payment) => (await asked()).transaction(payment),
    authorizationUse: async (payment) => (await asked()).authorizationUse(payment),
  };

  return {
    chain,
    list: async () => (await readLog()).list(),
    async explain(id) {
      const { describePayment } = await import("../../observe/studio/payment-detail.ts");
      const payment = (await readLog()).find(id.toLowerCase());
      return payment === undefined ? [] : (await describePayment(payment, context, chain)).explanations;
    },
    forget() {
      loaded = undefined;
    },
    close: () => log?.close(),
  };
}
