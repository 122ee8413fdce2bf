import type { Capture } from "../../observe/capture/capture-format.ts";
import { capturePayment } from "../../observe/capture/capture-payment.ts";
import type { PaymentRecord } from "../../observe/timeline/record.ts";
import { nameOfTestPayer } from "../../published/test-payers.ts";
import { KitError } from "../../util/errors.ts";
import type { FacilitatorContracts } from "../setup/addresses.ts";
import { readableChainOf } from "./ask-chain.ts";
import type { ControlledHarness } from "./controlled-harness.ts";

/**
 * A payment of a harness, with the state of the local chain that decided it. Without the signature where the payer is no
 * test payer: local chains have the ids and tokens of real ones, so a wallet's signature moves its money there too.
 */
export async function captureOf(
  record: PaymentRecord,
  chains: ControlledHarness["chains"],
  {
    contracts,
    keepSignature,
  }: {
    contracts: FacilitatorContracts;
    /** Whether the signature is kept whoever the payer is. */
    keepSignature: boolean;
  },
): Promise<Capture> {
  const { request } = record;
  const chain = request && readableChainOf(chains, request.knownNetwork.name);
  if (request === undefined || chain === undefined)
    throw new KitError("The payment has no chain that runs here");
  const isTestPayer = nameOfTestPayer(request.payment.payer) !== undefined;
  const signature = keepSignature || isTestPayer ? "kept" : "cut";
  return capturePayment(record, request, { contracts, chain, signature });
}
