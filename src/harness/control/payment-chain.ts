import { createUseFinder, transactionOf } from "../../observe/capture/chain-questions.ts";
import type { PaymentChain } from "../../observe/studio/payment-detail.ts";
import { readableChainOf } from "./ask-chain.ts";
import type { ControlledHarness } from "./controlled-harness.ts";

/** What the local chains say of payments. */
export function createPaymentChain(chains: ControlledHarness["chains"]): PaymentChain {
  return {
    transaction: (record) =>
      transactionOf(record, readableChainOf(chains, record.request?.knownNetwork.name ?? null)),
    authorizationUse: createUseFinder(({ knownNetwork }) => readableChainOf(chains, knownNetwork.name)),
  };
}
