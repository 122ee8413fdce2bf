import { type Finding, finding, isCause, sortByRank } from "../../protocol/mistakes.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import { isRecord } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import type { ExchangeView } from "../timeline/payment-view.ts";
import { type PaymentRecord, type SeenAtShop, type ShopEnd, seenAtShop } from "../timeline/record.ts";
import { comparePayment, explainReceipt } from "./compare-payment.ts";
import type { Deployment } from "./deployment.ts";
import {
  explainShop,
  readChallenges,
  readHeaderValue,
  type ShopAnswer,
  saysTheSame,
} from "./explain-shop.ts";
import { explanationOf } from "./explanations.ts";
import { namesIn, readInput } from "./read-input.ts";

/** `isUnsettled`: found valid, but no settle request came. */
type Decided = { isUnsettled: boolean; isSettled: boolean };

/** Finds problems between client and shop if the proxy of `up --shop` saw the exchange; otherwise returns nothing. */
export function explainAtShop(record: PaymentRecord, decided: Decided, deployment: Deployment): Finding[] {
  const seen = seenAtShop(record);
  if (seen?.ended === undefined) return [];
  const { sent, ended } = seen;
  // Judging a payment's times is up to the facilitator.
  const context = { ...deployment, now: undefined };
  const { shop, fate, problem, answer } = ended;
  if (answer === undefined) {
    if (fate === "down") return [finding("shop-down", "", { got: problem ?? "no answer", expected: shop })];
    return sent === undefined ? [] : [finding("answer-lost", "")];
  }
  if (sent === undefined) {
    // The `sent` entry of this request may have been dropped.
    if (ended.isPaid) return [];
    const { origin } = new URL(shop);
    // A shop may name its own address: its buyers reach it without the proxy.
    return explainShop(readable(answer), ended.url, context).filter(
      ({ mistake, got }) => mistake !== "resource-differs" || got?.includes(origin) !== true,
    );
  }
  const isUnasked = !seen.isAsked && !record.mayBeAsked;
  if (answer.status < 400) {
    // A redirect delivers nothing yet.
    if (answer.status >= 300) return [];
    const found = receiptOf(seen, answer, context);
    return isUnasked ? [unasked(`${answer.status}`, "served"), ...found] : found;
  }
  if (decided.isSettled) return [finding("paid-not-served", "", { got: `${answer.status}` })];
  const own = readChallenges(readable(answer)).challenges;
  const { challenge } = sent;
  const before =
    challenge?.step === "ended" && challenge.answer !== undefined
      ? readChallenges(readable(challenge.answer)).challenges
      : [];
  const compared = comparePayment(sent.payment, own.length > 0 ? own : before, context);
  if (isUnasked) {
    const [worst, ...others] = compared.filter(isCause);
    const said = own.map(({ value }) => value.error).find((error) => typeof error === "string");
    const got = said === undefined ? `${answer.status}` : `${answer.status}: ${said}`;
    if (worst === undefined) {
      const refused = unasked(got, "refused");
      if (answer.status !== 402 || !saysTheSame(before, own)) return [refused, ...compared];
      const title = `${refused.title}, as if no payment had come`;
      return [{ ...finding("payment-not-seen", "", { got }), title }, ...compared];
    }
    const title = `The shop refused it without asking the facilitator: ${explanationOf(worst).title}`;
    return [{ ...worst, title }, ...others];
  }
  return decided.isUnsettled
    ? sortByRank([finding("not-settled", "", { got: `${answer.status}` }), ...compared])
    : [];
}

/** Advice on a payment that the shop served or refused without asking the facilitator. */
const adviceOnUnasked = {
  served: "If the shop sells this, let it verify and settle the payment before it serves.",
  refused:
    "The shop's own log says why. It may also ask another facilitator: compare the URL that it is configured with.",
};

function unasked(got: string, did: "served" | "refused"): Finding {
  const title = `The shop ${did} it without asking the facilitator`;
  return { ...finding("never-asked", "", { got, fix: adviceOnUnasked[did] }), title };
}

/** Finds problems in the receipt that came with the goods. */
function receiptOf(
  { sent }: SeenAtShop,
  answer: Answer,
  context: Deployment & { now: undefined },
): Finding[] {
  const { input } = readInput(sent?.payment.value ?? "");
  const { payer } = namesIn(input, context.networks ?? builtInNetworks) ?? {};
  const payload = input !== undefined && "payload" in input ? membersOf(input.payload) : {};
  const { network } = isRecord(payload.accepted) ? payload.accepted : payload;
  if (payer === undefined) return [];
  const x402Version = isRecord(payload.accepted) ? 2 : 1;
  const seller = { x402Version, payer, network: `${network}` } as const;
  return explainReceipt(readable(answer).headers, seller, context).findings;
}

type Answer = NonNullable<ShopEnd["answer"]>;

const readable = ({ headers, body }: Answer): ShopAnswer => ({ headers: new Headers(headers), body });

/** The requests to the shop with their headers decoded, without signatures. */
export function exchangesOf({ entries }: PaymentRecord): ExchangeView[] {
  const seen = entries.filter((entry) => entry.kind === "shop");
  const ids = [...new Set(seen.map(({ requestId }) => requestId))];
  return ids.flatMap((id) => {
    const parts = seen.filter(({ requestId }) => requestId === id);
    const sent = parts.find((one) => one.step === "sent");
    const ended = parts.find((one) => one.step === "ended");
    const [first] = parts;
    if (first === undefined) return [];
    const { answer } = ended ?? {};
    const payload = membersOf(sent && readHeaderValue(sent.payment.value, "").value);
    const { scheme, network } = payload;
    const receipt = answer?.headers["payment-response"] ?? answer?.headers["x-payment-response"];
    return {
      method: first.method,
      url: first.url,
      sentAt: sent?.at ?? first.at - Math.round(ended?.tookMs ?? 0),
      endedAt: ended?.at ?? null,
      header: sent?.payment.name ?? null,
      accepted: payload.accepted ?? (scheme === undefined ? null : { scheme, network }),
      status: answer?.status ?? null,
      challenges: answer ? readChallenges(readable(answer)).challenges.map(({ value }) => value) : [],
      receipt: receipt === undefined ? null : (readHeaderValue(receipt, "").value ?? null),
      body: answer?.status === 402 ? null : answer?.body || null,
    };
  });
}
