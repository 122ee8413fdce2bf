import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isErc6492 } from "../../protocol/signature.ts";
import { kitVersion } from "../../util/kit-version.ts";
import type { ExplainContext } from "../explain/explain.ts";
import { shownBody } from "../studio/payment-body.ts";
import type { LoggedPayment } from "../studio/payment-log.ts";
import type { Capture } from "./capture.ts";
import { readCapturedChain } from "./read-captured-chain.ts";
import type { ReadableChain } from "./readable-chain.ts";

/** Replaces a signature that is left out of a capture. */
const cutSignature: Hex = `0x${"00".repeat(65)}`;

/**
 * Captures a payment that the service has seen, with the state of the chain that decided it.
 *
 * @param signature `cut` if the file may reach people who must not settle the payment: until it expires, anyone
 * with the signature can submit it to the token
 * @throws {KitError} when the chain does not have that state any more
 */
export async function capturePayment(
  { summary, body, timeline }: LoggedPayment,
  request: PaymentRequest,
  {
    chain,
    contracts,
    signature,
    headAt,
  }: {
    chain: ReadableChain;
    contracts: ExplainContext["contracts"];
    signature: Capture["signature"];
    /** The number of the block that was the newest to the service at a time, in unix milliseconds, where that is known. */
    headAt?: ((at: number) => bigint | undefined) | undefined;
  },
): Promise<Capture> {
  const { transaction, ledger } = summary;
  const operation = summary.settle === null ? "verify" : "settle";
  const view = summary.settle ?? summary.verify;
  const asked = timeline.findLast(({ kind, title }) => kind === "request" && title.endsWith(operation));
  // Another verify may have been judged since.
  const place = timeline.findLastIndex(
    ({ kind, requestId }) => kind === "check" && requestId === asked?.requestId,
  );
  const judged = timeline[place];
  const isAfterwards = timeline
    .slice(0, Math.max(place, 0))
    .some(({ kind, title }) => kind === "ledger" && title === "settled");
  const checked = timeline.findLast(({ kind, title }) => kind === "check" && title === "signatureHolds");
  const context = { contracts, tokens: { [chain.network.name]: [chain.asset] } };
  return {
    x402Capture: 1,
    kit: kitVersion(),
    capturedAt: new Date().toISOString(),
    operation,
    request: shownBody({ request, body }, context, signature === "kept" ? (text) => text : withoutSecret),
    signature,
    signatureRefusal:
      checked === undefined || checked.ok
        ? null
        : { reason: String(checked.details.reason), message: String(checked.details.message) },
    outcome: view?.outcome ?? "open",
    reason: view?.reason ?? null,
    message: view?.message ?? null,
    ledger,
    transaction,
    chain: await readCapturedChain(chain, request, {
      ...{ transaction, isAfterwards, askedAt: asked?.at ?? summary.lastSeenAt },
      head: judged && headAt?.(judged.at),
    }),
    timeline,
  };
}

/** The ending that marks an undeployed wallet (ERC-6492) stays. */
function withoutSecret(signature: Hex): Hex {
  return isErc6492(signature) ? `${cutSignature}${signature.slice(-64)}` : cutSignature;
}
