import type { Capture } from "../../capture/capture.ts";
import { capturePayment } from "../../capture/capture-payment.ts";
import { KitError } from "../../errors.ts";
import type { LoggedPayment } from "../../studio/payment-log.ts";
import type { FacilitatorContracts } from "../stage/addresses.ts";
import type { ControlledHarness } from "./controlled-harness.ts";
import { readableChainOf } from "./readable-chain.ts";

/** A payment of a harness, with the state of the local chain that decided it. */
export async function captureOf(
  payment: LoggedPayment,
  chains: ControlledHarness["chains"],
  {
    contracts,
    headAt,
  }: {
    contracts: FacilitatorContracts;
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
    ...{ contracts, signature: "kept", chain },
    headAt: (at) => headAt(chain.network.name, at),
  });
}
