import type { Capture } from "../../capture/capture.ts";
import { KitError } from "../../errors.ts";
import type { LoggedPayment } from "../../studio/payment-log.ts";
import { kitVersion } from "../../util/kit-version.ts";
import { readCapturedChain } from "./captured-chain.ts";
import type { ControlledHarness } from "./controlled-harness.ts";

/** A payment that the service has seen, with the state of the chain that decided it. */
export async function capturePayment(
  chains: ControlledHarness["chains"],
  { summary, request, timeline }: LoggedPayment,
  body: Record<string, unknown>,
): Promise<Capture> {
  const { network, transaction, ledger } = summary;
  const chain = network === null ? undefined : chains[network];
  if (chain === undefined || request === undefined)
    throw new KitError("The payment has no chain that runs here");
  const operation = summary.settle === null ? "verify" : "settle";
  const view = summary.settle ?? summary.verify;
  const asked = timeline.findLast(({ kind, title }) => kind === "request" && title.endsWith(operation));
  return {
    x402Capture: 1,
    kit: kitVersion(),
    capturedAt: new Date().toISOString(),
    operation,
    request: body,
    outcome: view?.outcome ?? "open",
    reason: view?.reason ?? null,
    message: view?.message ?? null,
    ledger,
    transaction,
    chain: await readCapturedChain(chain, request, { transaction, askedAt: asked?.at ?? summary.lastSeenAt }),
    timeline,
  };
}
