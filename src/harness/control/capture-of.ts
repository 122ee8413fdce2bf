import type { Capture } from "../../observe/capture/capture-format.ts";
import { capturePayment } from "../../observe/capture/capture-payment.ts";
import type { LoggedPayment } from "../../observe/studio/payment-log.ts";
import { KitError } from "../../util/errors.ts";
import type { FacilitatorContracts } from "../setup/addresses.ts";
import { readableChainOf } from "./ask-chain.ts";
import type { ControlledHarness } from "./controlled-harness.ts";

/**
 * A payment of a harness, with the state of the local chain that decided it. Without the signature where the payer is no
 * test payer: local chains have the ids and tokens of real ones, so a wallet's signature moves its money there too.
 */
export async function captureOf(
  payment: LoggedPayment,
  chains: ControlledHarness["chains"],
  {
    contracts,
    keepSignature,
    headAt,
  }: {
    contracts: FacilitatorContracts;
    /** Whether the signature is kept whoever the payer is. */
    keepSignature: boolean;
    /** The newest block of a network at a time, in unix milliseconds. */
    headAt(network: string, at: number): bigint | undefined;
  },
): Promise<Capture> {
  const { summary, request } = payment;
  const chain = readableChainOf(chains, summary.network);
  if (chain === undefined || request === undefined) {
    throw new KitError("The payment has no chain that runs here");
  }
  return capturePayment(payment, request, {
    ...{ contracts, chain },
    signature: keepSignature || summary.payerName !== null ? "kept" : "cut",
    headAt: (at) => headAt(chain.network.name, at),
  });
}
