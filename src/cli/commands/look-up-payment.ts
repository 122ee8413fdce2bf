import { askState, askUse } from "../../harness/control/ask-chain.ts";
import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import type { ExplainContext } from "../../observe/explain/explain-terms.ts";
import type { KnownOfChain, RefusalExplanation } from "../../observe/explain/explanations.ts";
import type { NamedPayment } from "../../observe/explain/read-input.ts";
import type { PaymentDetail } from "../../observe/studio/payment-view.ts";
import { explainUse, type SettledHere, settledHere } from "../../observe/studio/refusal-details.ts";
import { adviceOnReason } from "../../protocol/catalogue-texts.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { isWireAddress } from "../../protocol/wire-values.ts";
import { createPaymentReader } from "../kit/read-payments.ts";
import { describeState, explainState, findPayment, idOf } from "./look-up.ts";

/** What is known at a URL of a payment, and what is wrong with it there. */
type Lookup = {
  seen: PaymentDetail | undefined;
  explanations: readonly RefusalExplanation[];
  /** What was found out of its chain. */
  known: KnownOfChain;
  /** A sentence. */
  summary: string;
};

/**
 * Asks a running service what it did about a payment, and its chain how the authorization was used or, where it is
 * unused, whether the payer can pay.
 *
 * @throws KitError when no payments can be read there
 */
export async function lookUpPayment({
  url,
  token,
  payment,
  contracts,
}: {
  url: string;
  token: string | undefined;
  payment: NamedPayment | undefined;
  contracts: ExplainContext["contracts"];
}): Promise<Lookup> {
  const reader = createPaymentReader(url, token);
  if (payment === undefined) {
    // Nothing is said of a URL that was not asked.
    await reader.list(1);
    const summary = `At ${url}: nothing was looked up, since this names no authorization.`;
    return { seen: undefined, explanations: [], known: "nothing", summary };
  }
  const { network, authorization } = payment;
  const seen = await findPayment(reader, payment);
  const asset = isWireAddress(seen?.asset) ? seen.asset : payment.assets[0];
  const named = {
    network: network.name,
    asset,
    payment: { payer: authorization.from, nonce: authorization.nonce },
    settlementId: idOf(payment, asset),
  };
  const use = settledHere(seen?.timeline ?? []) ?? (await askUse(url, named));
  const isSettlement = use ? isThrough(contracts[network.tier], use) : false;
  const own = isSettlement ? adviceOnReason("invalid_transaction_state", "settled_before") : undefined;
  const used = explainUse(use ?? undefined, seen?.token ?? null, own);
  const explanations = seen?.explanations ?? [];
  const isSaid = explanations.some(({ at }) => at === "authorization.nonce");
  // What was found of its use says all that the chain has to say.
  const state = use === null ? await askState(url, named) : undefined;
  const ofState = state === undefined ? [] : explainState(state, payment, asset);
  const seenMistakes = new Set(explanations.map(({ mistake }) => mistake));
  const ofChain =
    state !== undefined
      ? `; ${describeState(state, payment, { asset, units: seen?.token ?? null })}`
      : use
        ? ""
        : "; no chain could be asked there whether its authorization was used";
  return {
    seen,
    explanations: [
      ...(used === undefined || isSaid ? [] : [used]),
      ...explanations,
      ...ofState.filter(({ mistake }) => !seenMistakes.has(mistake)),
    ],
    known: state !== undefined ? "state" : use ? "use" : "nothing",
    summary: `At ${url}: ${seen === undefined ? "no verify or settle of this payment was seen" : whatWasSeen(seen)}${ofChain}.`,
  };
}

/** Whether the facilitator contract used the authorization: by its ledger, or by the transaction. */
function isThrough(contract: string, use: SettledHere | PaymentUse): boolean {
  return "settledAt" in use || (use.to !== null && sameAddress(use.to, contract));
}

function whatWasSeen(seen: PaymentDetail): string {
  const ends = (["verify", "settle"] as const).flatMap((operation) => {
    const view = seen[operation];
    return view === null
      ? []
      : `${operation} ${view.outcome}${view.reason === null ? "" : `: ${view.reason}`}`;
  });
  return `${ends.join(", ")}${seen.transaction === null ? "" : `, transaction ${seen.transaction}`}`;
}
