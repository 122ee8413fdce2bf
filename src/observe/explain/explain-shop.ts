import { isDeepStrictEqual } from "node:util";
import { isAddress, sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding, isCause, isMistakeId, sortByRank } from "../../protocol/mistakes.ts";
import { builtInNetworks, type NetworkRegistry } from "../../protocol/networks.ts";
import { decodeHeader } from "../../protocol/payment-headers.ts";
import { formatBoth, unitsOf } from "../../protocol/token-units.ts";
import { isRecord, parseUint256 } from "../../protocol/wire-values.ts";
import { membersOf, parseJson, unlessTooDeep } from "../../util/json.ts";
import { isLoopbackUrl } from "../../util/loopback.ts";
import { findSlip, mostTyposOf, showValue } from "../../util/text.ts";
import { type ExplainContext, explain } from "./explain-input.ts";

/** A shop's response to a request without a payment. */
export type ShopAnswer = { headers: Headers; body: string };

/** A challenge in a 402 response. */
export type ShopChallenge = {
  /** The part of the response that contains it. */
  place: "PAYMENT-REQUIRED" | "body";
  x402Version: 1 | 2;
  accepts: readonly unknown[];
  value: Record<string, unknown>;
};

/** A problem with a shop's offer. `isMinor`: payments for it may still be good. */
export type ShopFinding = Finding & { isMinor: boolean };

/** Reads a header that should be JSON in base64. `value` is undefined if nothing could be decoded. */
export function readHeaderValue(text: string, at: string): { value: unknown; findings: Finding[] } {
  const bare = text.trim();
  const raw = unlessTooDeep(parseJson(bare));
  if (isRecord(raw)) return { value: raw, findings: [finding("not-encoded", at)] };
  const once = unlessTooDeep(decodeHeader(bare));
  if (once !== undefined) {
    const isStandard = /^[A-Za-z0-9+/]*={0,2}$/.test(bare) && bare.length % 4 === 0;
    return { value: once, findings: isStandard ? [] : [finding("odd-base64", at)] };
  }
  const twice = unlessTooDeep(decodeHeader(Buffer.from(bare, "base64").toString("utf8")));
  if (twice !== undefined) return { value: twice, findings: [finding("encoded-twice", at)] };
  return { value: undefined, findings: [finding("not-json", at, { got: showValue(bare) })] };
}

/** Reads the challenges of a 402: version 2 in its header, version 1 in its body. Never throws. */
export function readChallenges({ headers, body }: ShopAnswer): {
  challenges: readonly ShopChallenge[];
  findings: readonly Finding[];
} {
  const header = headers.get("payment-required");
  const inHeader = header === null ? undefined : readHeaderValue(header, "PAYMENT-REQUIRED");
  const inBody = unlessTooDeep(parseJson(body));
  // A version 2 shop may repeat its challenge in the body, for people.
  const isRepeated = header !== null && membersOf(inBody).x402Version !== 1;
  const read = [
    ...(inHeader?.value === undefined ? [] : [readChallenge(inHeader.value, "PAYMENT-REQUIRED")]),
    ...(isRepeated || !Array.isArray(membersOf(inBody).accepts) ? [] : [readChallenge(inBody, "body")]),
  ];
  const findings = [...(inHeader?.findings ?? []), ...read.flatMap((one) => one.findings)];
  const challenges = read.flatMap(({ challenge }) => challenge ?? []);
  return {
    challenges,
    findings: challenges.length + findings.length === 0 ? [finding("no-challenge", "")] : findings,
  };
}

/** No real shop has more offers; the rest is ignored. */
const mostOffers = 1_000;

function readChallenge(
  read: unknown,
  place: ShopChallenge["place"],
): { challenge?: ShopChallenge; findings: Finding[] } {
  const value = { ...membersOf(read) };
  const { x402Version, accepts } = value;
  if (x402Version !== 1 && x402Version !== 2) {
    const facts = { got: showValue(x402Version), expected: "1 or 2" };
    return { findings: [finding("missing-member", `${place}.x402Version`, facts)] };
  }
  if (!Array.isArray(accepts) || accepts.length === 0) {
    const facts = { got: showValue(accepts), expected: "the offers, at least one" };
    return { findings: [finding("missing-member", `${place}.accepts`, facts)] };
  }
  const due = x402Version === 2 ? "PAYMENT-REQUIRED" : "body";
  const findings =
    place === due
      ? []
      : [
          finding("misplaced-challenge", place, {
            got: `version ${x402Version}`,
            expected: `version ${x402Version} in ${due === "body" ? "the body" : `the header ${due}`}`,
          }),
        ];
  return { challenge: { place, x402Version, accepts: accepts.slice(0, mostOffers), value }, findings };
}

/** Finds problems in a challenge: in its offers on known networks, and in the resource URL that it names. */
export function explainOffers(
  { place, x402Version, accepts, value }: ShopChallenge,
  url: string,
  context: ExplainContext,
): ShopFinding[] {
  const { networks = builtInNetworks } = context;
  const found = accepts.flatMap((entry, index) => {
    if (isForeign(entry, x402Version, networks)) return [];
    return explain(JSON.stringify({ x402Version, accepts: [entry] }), context).findings.map((one) => ({
      ...one,
      at: one.at.replace("accepts[0]", `${place}.accepts[${index}]`),
      isMinor: !isCause(one) || isMinor(one),
    }));
  });
  const named = x402Version === 2 ? [value.resource] : accepts;
  const resources = named.flatMap((one, index): ShopFinding[] => {
    const member = x402Version === 2 ? "resource.url" : `accepts[${index}].resource`;
    const got = membersOf(one)[x402Version === 2 ? "url" : "resource"];
    if (typeof got === "string" && addressOf(got) === addressOf(url)) return [];
    const facts = { got: showValue(got), expected: addressOf(url) };
    return [{ ...finding("resource-differs", `${place}.${member}`, facts), isMinor: true }];
  });
  return [...found, ...resources.slice(0, 1)];
}

/** Finds all problems in a shop's 402, worst first. */
export function explainShop(answer: ShopAnswer, url: string, context: ExplainContext): Finding[] {
  const { challenges, findings } = readChallenges(answer);
  const hidden = hiddenHeaders(answer.headers, challenges);
  return sortByRank([
    ...findings,
    ...challenges.flatMap((one) => [...explainOffers(one, url, context), ...explainLimits(one, context)]),
    ...(hidden.length === 0 ? [] : [finding("headers-hidden", "", { got: `hidden: ${hidden.join(", ")}` })]),
  ]);
}

/** The names in a header that lists names, in lower case; undefined if the header is `*`. */
export function namesInHeader(headers: Headers, header: string): readonly string[] | undefined {
  const text = headers.get(header) ?? "";
  return text.trim() === "*" ? undefined : text.toLowerCase().split(/\s*,\s*/);
}

/** The x402 headers that pages from other origins cannot read although the 402 allows those origins. */
export function hiddenHeaders(headers: Headers, challenges: readonly ShopChallenge[]): readonly string[] {
  if (!headers.has("access-control-allow-origin")) return [];
  const exposed = namesInHeader(headers, "access-control-expose-headers");
  const due = challenges.flatMap(({ x402Version }) =>
    x402Version === 1 ? ["X-PAYMENT-RESPONSE"] : ["PAYMENT-REQUIRED", "PAYMENT-RESPONSE"],
  );
  return [...new Set(due)].filter((name) => exposed?.includes(name.toLowerCase()) === false);
}

/** The most that x402-fetch, the version 1 client, pays by default, in USDC's smallest unit. */
const usualLimit = 100_000n;

function explainLimits(
  { place, x402Version, accepts }: ShopChallenge,
  { networks = builtInNetworks }: ExplainContext,
): Finding[] {
  if (x402Version !== 1) return [];
  return accepts.flatMap((offer, index) => {
    const { network, asset, maxAmountRequired: text } = membersOf(offer);
    const { usdc } = networks.find(`${network}`, 1) ?? {};
    const amount = typeof text === "string" ? parseUint256(text) : null;
    const isUsdc = usdc !== undefined && isAddress(asset) && sameAddress(asset, usdc.address);
    if (!isUsdc || amount === null || amount <= usualLimit) return [];
    const units = unitsOf(usdc);
    const facts = { got: formatBoth(amount, units), expected: `at most ${formatBoth(usualLimit, units)}` };
    return [finding("above-usual-limit", `${place}.accepts[${index}].maxAmountRequired`, facts)];
  });
}

/** True if a shop answered a paid request exactly as it does an unpaid one. */
export function saysTheSame(before: readonly ShopChallenge[], again: readonly ShopChallenge[]): boolean {
  const errors = (challenges: readonly ShopChallenge[]) => challenges.map(({ value }) => value.error ?? null);
  return again.length > 0 && isDeepStrictEqual(errors(before), errors(again));
}

/** True for an offer on a network that is unknown here. A misspelled known name does not count. */
export function isForeign(entry: unknown, x402Version: 1 | 2, networks: NetworkRegistry): boolean {
  const { network } = membersOf(entry);
  if (typeof network !== "string" || networks.find(network, 1) || networks.find(network, 2)) return false;
  if (x402Version === 2) return /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/.test(network);
  const isName = /^[a-z][-a-z0-9]{1,63}$/.test(network);
  return isName && findSlip(network, networks.names, mostTyposOf(network)) === undefined;
}

/** True for a mistake that keeps buyers from paying a shop, whichever facilitator settles. */
export function keepsFromPaying({ mistake, got }: { mistake: string; got: string | null }): boolean {
  return (
    isCause({ mistake }) && !(isMistakeId(mistake) && isMinor({ mistake, ...(got !== null && { got }) }))
  );
}

/** True if another facilitator might settle it: its schemes, tokens and contracts are not known here. */
function isMinor({ mistake, got }: Pick<Finding, "mistake" | "got">): boolean {
  const isOther = mistake === "unknown-scheme" || mistake === "permit-facilitator";
  return isOther || (mistake === "wrong-asset" && isAddress(got));
}

/** A URL without its query. */
function addressOf(text: string): string {
  const url = URL.parse(text);
  if (url === null) return text;
  // Frameworks differ in how they write the loopback host.
  if (isLoopbackUrl(text)) url.hostname = "127.0.0.1";
  return `${url.origin}${url.pathname}`;
}
