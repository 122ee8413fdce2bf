import type { Capture } from "../../capture/capture.ts";
import { capturePayment } from "../../capture/capture-payment.ts";
import { KitError } from "../../errors.ts";
import { createLocalRpc, RpcRefusal } from "../../rpc/local-rpc.ts";
import type { RpcAnswer } from "../../rpc/rpc.ts";
import type { LoggedPayment } from "../../studio/payment-log.ts";
import type { FacilitatorContracts } from "../stage/addresses.ts";
import type { ControlledHarness } from "./controlled-harness.ts";

/** Local blocks are at most this far apart. */
const blockTimeMs = 1_000;

/** A payment of a harness, with the state of the local chain that decided it. */
export async function captureOf(
  payment: LoggedPayment,
  chains: ControlledHarness["chains"],
  contracts: FacilitatorContracts,
): Promise<Capture> {
  const { summary, request } = payment;
  const chain = summary.network === null ? undefined : chains[summary.network];
  if (chain === undefined || request === undefined) {
    throw new KitError("The payment has no chain that runs here");
  }
  const rpc = createLocalRpc(chain.rpcUrl);
  return capturePayment(payment, request, {
    contracts,
    signature: "kept",
    chain: {
      ...chain,
      blockTimeMs,
      async ask(method, ...params): Promise<RpcAnswer> {
        try {
          return { result: await rpc.request(method, ...params) };
        } catch (error) {
          if (!(error instanceof RpcRefusal)) throw error;
          return { error: { code: error.code, message: error.message, data: undefined } };
        }
      },
    },
  });
}
