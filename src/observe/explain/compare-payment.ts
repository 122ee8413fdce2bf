import { isDeepStrictEqual } from "node:util";
import { isBytes32, sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding, sortByRank } from "../../protocol/mistakes.ts";
import { isRecord } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";
import { type ExplainContext, explain } from "./explain-input.ts";
import { readHeaderValue, type ShopChallenge } from "./explain-shop.ts";

/** A payment header; its name may be unknown. */
export type PaymentHeader = { name?: string | undefined; value: string };

const headerNames = { 1: "X-PAYMENT", 2: "PAYMENT-SIGNATURE" } as const;

/** Finds problems in how a payment is sent: its header's name and the encoding. */
export function explainHeader({ name, value }: PaymentHeader): Finding[] {
  const { value: payload, findings: ofEncoding } = readHeaderValue(value, name ?? "");
  // Without a name it may be a payment that somebody decoded to look at it.
  const findings = ofEncoding.filter(({ mistake }) => name !== undefined || mistake !== "not-encoded");
  const version = versionOf(payload);
  const other = version === undefined ? undefined : headerNames[version === 1 ? 2 : 1];
  if (version === undefined || name?.toUpperCase() !== other) return findings;
  const expected = `${headerNames[version]} for version ${version}`;
  return [finding("wrong-header", name ?? "", { got: name ?? "", expected }), ...findings];
}

/** The version that a payment is written in, whatever its x402Version says. */
function versionOf(payload: unknown): 1 | 2 | undefined {
  if (!isRecord(payload) || !("payload" in payload)) return undefined;
  return isRecord(payload.accepted) ? 2 : 1;
}

/** Compares a payment that a shop refused with the shop's offers, assuming that the payer accepted the nearest one. */
export function comparePayment(
  header: PaymentHeader,
  challenges: readonly ShopChallenge[],
  context: ExplainContext,
): Finding[] {
  const findings = explainHeader(header);
  const { value: payload } = readHeaderValue(header.value, "");
  const version = versionOf(payload);
  if (version === undefined || challenges.length === 0) return findings;
  const offers = challenges
    .filter(({ x402Version }) => x402Version === version)
    .flatMap(({ accepts }) => accepts.filter(isRecord));
  if (offers.length === 0) {
    const offered = challenges[0]?.x402Version;
    return [...findings, differing({ at: "x402Version", sent: version, offered })];
  }
  const { scheme, network, accepted } = membersOf(payload);
  const sent = version === 1 ? { scheme, network } : membersOf(accepted);
  const [nearest] = offers
    .map((offer) => ({ offer, differences: differencesOf(sent, version === 1 ? pick(offer) : offer) }))
    .sort((a, b) => a.differences.length - b.differences.length);
  const request = { paymentPayload: payload, paymentRequirements: nearest?.offer };
  const ofPayment = explain(JSON.stringify(request), { ...context, payTo: "any" }).findings.filter(
    ({ mistake, at }) =>
      !/^(networks|schemes)-differ$/.test(mistake) && !at.startsWith("paymentRequirements"),
  );
  return sortByRank([...findings, ...(nearest?.differences ?? []).map(differing), ...ofPayment]);
}

/** The two members that a version 1 payment repeats from the offer. */
const pick = ({ scheme, network }: Record<string, unknown>) => ({ scheme, network });

type Difference = { at: string; sent: unknown; offered: unknown };

function differing({ at, sent, offered }: Difference): Finding {
  const [got, expected] = [showValue(sent), showValue(offered)];
  const title = `${at}: you sent ${got}, the shop offers ${expected}`;
  return { ...finding("accepted-differs", at, { got, expected }), title };
}

/** The members that differ between two offers; nested ones, such as those of `extra`, one by one. */
function differencesOf(
  sent: Readonly<Record<string, unknown>>,
  offered: Readonly<Record<string, unknown>>,
  at = "",
): Difference[] {
  const names = new Set([...Object.keys(offered), ...Object.keys(sent)]);
  return [...names].flatMap((name) => {
    const [one, other] = [sent[name], offered[name]];
    if (at === "" && isRecord(one) && isRecord(other)) return differencesOf(one, other, `${name}.`);
    return isDeepStrictEqual(one, other) ? [] : [{ at: `${at}${name}`, sent: one, offered: other }];
  });
}

/** Finds problems in the receipt that came with the goods. */
export function explainReceipt(
  headers: Headers,
  {
    x402Version,
    payer,
    network,
    ...seller
  }: { x402Version: 1 | 2; payer: string; network: string; claimsLater?: boolean },
  context: ExplainContext,
): { receipt: unknown; findings: Finding[] } {
  const name = x402Version === 1 ? "X-PAYMENT-RESPONSE" : "PAYMENT-RESPONSE";
  const header = headers.get(name);
  const bad = (at: string, got: unknown, expected: string) =>
    finding("bad-receipt", at, { got: showValue(got), expected });
  if (header === null) return { receipt: null, findings: [bad(name, undefined, "a receipt")] };
  const { value: receipt, findings } = readHeaderValue(header, name);
  const { success, transaction, amount, ...said } = membersOf(receipt);
  if (success !== true) {
    const refused = explain(JSON.stringify(receipt ?? null), context).findings;
    return { receipt, findings: [...findings, bad(`${name}.success`, success, "true"), ...refused] };
  }
  // A shop that claims later has no transaction to report for a purchase.
  const isUnsent = amount === "0" || (seller.claimsLater === true && amount === "");
  const isSettled = isBytes32(transaction) || (transaction === "" && isUnsent);
  const isPayers =
    said.payer === undefined || (typeof said.payer === "string" && sameAddress(said.payer, payer));
  return {
    receipt,
    findings: [
      ...findings,
      ...(isSettled ? [] : [bad(`${name}.transaction`, transaction, "the hash of a transaction")]),
      ...(isPayers ? [] : [bad(`${name}.payer`, said.payer, payer)]),
      ...(said.network === network ? [] : [bad(`${name}.network`, said.network, network)]),
    ],
  };
}
