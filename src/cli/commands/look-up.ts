import { askState, askUse } from "../../harness/control/ask-chain.ts";
import { methodByNonces } from "../../methods/methods.ts";
import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import type { PayerState } from "../../methods/payment-state.ts";
import type { Deployment } from "../../observe/explain/deployment.ts";
import {
  explanationOfReason,
  type KnownOfChain,
  type RefusalExplanation,
} from "../../observe/explain/explanations.ts";
import type { NamedPayment } from "../../observe/explain/read-input.ts";
import { explainUse, type SettledHere, settledHere } from "../../observe/studio/payment-detail.ts";
import { mostListed, type PaymentDetail, type PaymentSummary } from "../../observe/timeline/payment-view.ts";
import type { Situation } from "../../protocol/catalogue.ts";
import { adviceOnReason } from "../../protocol/catalogue-texts.ts";
import { type Address, type Hex, isAddress, sameAddress } from "../../protocol/hex.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import { formatAmount, knownToken, type TokenUnits, unitsOf } from "../../protocol/token-units.ts";
import { createPaymentReader, type PaymentReader } from "../kit/read-payments.ts";

/** The settlement id of a payment in a token. */
export function idOf({ network, payer, nonce, nonceSpace }: NamedPayment, asset: Address): Hex {
  return settlementId(network.chainId, nonceSpace ?? asset, payer, nonce);
}

/** Finds a payment in a running service. A version 1 header does not name its token, so all of them are tried. */
export async function findPayment(
  reader: PaymentReader,
  payment: NamedPayment,
): Promise<PaymentDetail | undefined> {
  const { network, payer: named, assets } = payment;
  for (const asset of assets) {
    const found = await reader.find(idOf(payment, asset));
    if (found !== undefined) return found;
  }
  const listed = (await reader.list(mostListed)).find(
    ({ id, network: on, payer, asset }) =>
      on === network.name &&
      payer !== null &&
      sameAddress(payer, named) &&
      isAddress(asset) &&
      idOf(payment, asset) === id,
  );
  return listed && reader.find(listed.id);
}

/** The most recently requested payment; undefined if there is none. */
export async function findLastAsked(reader: PaymentReader): Promise<PaymentSummary | undefined> {
  const [last] = (await reader.list(mostListed)).toSorted((a, b) => lastAskedAt(b) - lastAskedAt(a));
  return last;
}

/** When a payment was last requested, in Unix milliseconds. Later events on its chain do not count. */
export function lastAskedAt({ verify, settle, shop, lastSeenAt }: PaymentSummary): number {
  const asked = [verify, settle, shop].flatMap((view) => view ?? []);
  // An open request has no time, and a request without a route has neither verify nor settle.
  return asked.length === 0 ? lastSeenAt : Math.max(...asked.map(({ at }) => at ?? lastSeenAt));
}

/** A payment as the service at a URL knows it, with explanations. */
type There = {
  seen: PaymentDetail | undefined;
  explanations: readonly RefusalExplanation[];
  /** How much was learned from its chain. */
  known: KnownOfChain;
  /** A sentence about the payment. */
  told: string;
};

/**
 * Asks a running service about a payment, and its chain how the authorization was used or, if it is unused, if the
 * payer can pay.
 *
 * @throws KitError if no payments can be read there
 */
export async function askThere({
  url,
  token,
  payment,
  contracts,
}: {
  url: string;
  token: string | undefined;
  payment: NamedPayment | undefined;
  contracts: Deployment["contracts"];
}): Promise<There> {
  const reader = createPaymentReader(url, token);
  if (payment === undefined) {
    // Makes sure that payments can be read at the URL before it is mentioned.
    await reader.list(1);
    const told = `At ${url}: nothing was looked up, since this names no authorization.`;
    return { seen: undefined, explanations: [], known: "nothing", told };
  }
  const { network, payer, nonce, nonceSpace } = payment;
  const seen = await findPayment(reader, payment);
  const asset = isAddress(seen?.asset) ? seen.asset : payment.assets[0];
  const named = {
    network: network.name,
    payment: { asset, payer, nonce, nonceSpace: nonceSpace ?? asset },
    settlementId: idOf(payment, asset),
  };
  const use = settledHere(seen?.timeline ?? []) ?? (await askUse(url, named));
  const isSettlement = use ? isThrough(contracts[network.tier], use) : false;
  const own = isSettlement ? adviceOnReason("invalid_transaction_state", "settled_before") : undefined;
  const used = explainUse(use ?? undefined, seen?.token ?? null, own);
  const explanations = seen?.explanations ?? [];
  const isTold = explanations.some(({ at }) => at === "authorization.nonce");
  // If the authorization was used, the payer's state does not matter.
  const state = use === null ? await askState(url, named) : undefined;
  const ofState = state === undefined ? [] : explainState(state, payment, asset);
  const seenMistakes = new Set(explanations.map(({ mistake }) => mistake));
  const ofChain =
    state !== undefined
      ? `; ${describeState(state, payment, { asset, units: seen?.token ?? null })}`
      : use
        ? ""
        : "; no chain answered there about the use of its authorization";
  return {
    seen,
    explanations: [
      ...(used === undefined || isTold ? [] : [used]),
      ...explanations,
      ...ofState.filter(({ mistake }) => !seenMistakes.has(mistake)),
    ],
    known: state !== undefined ? "state" : use ? "use" : "nothing",
    told: `At ${url}: ${whatWasSeen(seen)}${ofChain}.`,
  };
}

/** Returns true if the facilitator contract used the authorization, according to the ledger or the transaction. */
function isThrough(contract: string, use: SettledHere | PaymentUse): boolean {
  return "settledAt" in use || (use.to !== null && sameAddress(use.to, contract));
}

function whatWasSeen(seen: PaymentDetail | undefined): string {
  // A payment that its shop refused is also known there, without verify or settle.
  if (!seen?.verify && !seen?.settle) return "no verify or settle of this payment was seen";
  const ends = (["verify", "settle"] as const).flatMap((operation) => {
    const view = seen[operation];
    return view === null
      ? []
      : `${operation} ${view.outcome}${view.reason === null ? "" : `: ${view.reason}`}`;
  });
  return `${ends.join(", ")}${seen.transaction === null ? "" : `, transaction ${seen.transaction}`}`;
}

/** Explains the obstacles to a payment in its chain's state as the refusals that they would cause. */
export function explainState(
  state: PayerState,
  { network, payer, value = 0n, nonceSpace }: NamedPayment,
  asset: Address,
): RefusalExplanation[] {
  const { stateRefusals, words } = methodByNonces(nonceSpace);
  const token = knownToken(network, asset);
  const one = { payment: { asset, payer }, needed: value, token, network: network.name };
  const places: Partial<Record<Situation, string>> = {
    used_on_chain: words.nonce,
    payer_blacklisted: words.payer,
    balance_too_small: words.limit,
  };
  return stateRefusals(state, one).flatMap((refusal) =>
    refusal ? explanationOfReason(refusal, places[refusal.situation] ?? "") : [],
  );
}

/** The state of a chain as the end of a sentence about a payment. */
export function describeState(
  { payerBalance, authorizationUsed }: PayerState,
  { network }: NamedPayment,
  { asset, units }: { asset: Address; units: TokenUnits | null },
): string {
  const token = knownToken(network, asset);
  const held = formatAmount(payerBalance, units ?? (token === undefined ? null : unitsOf(token)));
  const used = authorizationUsed
    ? "was used or cancelled in a block older than those that were searched"
    : "is unused";
  return `its authorization ${used} on ${network.name}, where its payer holds ${held}`;
}
