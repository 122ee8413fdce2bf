import { createUseFinder } from "../../observe/capture/payment-use.ts";
import { transactionOf } from "../../observe/capture/transaction-of.ts";
import type { PaymentChain } from "../../observe/studio/payment-detail.ts";
import { readableChainOf } from "./ask-chain.ts";
import type { ControlledHarness } from "./controlled-harness.ts";

/** What the local chains say of payments. */
export function createPaymentChain(chains: ControlledHarness["chains"]): PaymentChain {
  return {
    transaction: (payment) => transactionOf(payment, readableChainOf(chains, payment.summary.network)),
    authorizationUse: createUseFinder(({ knownNetwork }) => readableChainOf(chains, knownNetwork.name)),
  };
}
