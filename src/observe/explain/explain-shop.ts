import { isAddress } from "../../protocol/hex.ts";
import { type Finding, finding, isCause, sortByRank } from "../../protocol/mistakes.ts";
import { builtInNetworks, type NetworkRegistry } from "../../protocol/networks.ts";
import { decodeHeader } from "../../protocol/payment-headers.ts";
import { isRecord } from "../../protocol/wire-values.ts";
import { membersOf, parseJson } from "../../util/json.ts";
import { isLoopbackUrl } from "../../util/loopback.ts";
import { findSlip, mostTyposOf, showValue } from "../../util/text.ts";
import { type ExplainContext, explain } from "./explain-input.ts";

/** The answer of a shop to a request without a payment. */
export type ShopAnswer = { headers: Headers; body: string };

/** A challenge of a 402. */
export type ShopChallenge = {
  /** The part of the answer that has it. */
  place: "PAYMENT-REQUIRED" | "body";
  x402Version: 1 | 2;
  accepts: readonly unknown[];
  value: Record<string, unknown>;
};

/** What is wrong with an offer of a shop. `isMinor`: payments for it may still be good. */
export type ShopFinding = Finding & { isMinor: boolean };

/** Reads a header that should be base64 of JSON. `value` is undefined if it is neither. */
export function readHeaderValue(text: string, at: string): { value: unknown; findings: Finding[] } {
  const bare = text.trim();
  const raw = parseJson(bare);
  if (isRecord(raw)) return { value: raw, findings: [finding("not-encoded", at)] };
  const once = decodeHeader(bare);
  if (once !== undefined) {
    const isStandard = /^[A-Za-z0-9+/]*={0,2}$/.test(bare) && bare.length % 4 === 0;
    return { value: once, findings: isStandard ? [] : [finding("odd-base64", at)] };
  }
  const twice = decodeHeader(Buffer.from(bare, "base64").toString("utf8"));
  if (twice !== undefined) return { value: twice, findings: [finding("encoded-twice", at)] };
  return { value: undefined, findings: [finding("not-json", at, { got: showValue(bare) })] };
}

/** Reads the challenges of a 402: that of version 2 in its header, and that of version 1 in its body. Never throws. */
export function readChallenges({ headers, body }: ShopAnswer): {
  challenges: readonly ShopChallenge[];
  findings: readonly Finding[];
} {
  const header = headers.get("payment-required");
  const inHeader = header === null ? undefined : readHeaderValue(header, "PAYMENT-REQUIRED");
  const inBody = parseJson(body);
  // A shop of version 2 may repeat its challenge in the body, for people.
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
  return { challenge: { place, x402Version, accepts, value }, findings };
}

/** Finds what is wrong with a challenge: with its offers on known networks, and with the URL that it names. */
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

/** All findings about a shop's 402, worst first. */
export function explainShop(answer: ShopAnswer, url: string, context: ExplainContext): Finding[] {
  const { challenges, findings } = readChallenges(answer);
  return sortByRank([...findings, ...challenges.flatMap((one) => explainOffers(one, url, context))]);
}

/** Returns true for an offer on a network of which nothing is known here. A slip of a known name is no such network. */
export function isForeign(entry: unknown, x402Version: 1 | 2, networks: NetworkRegistry): boolean {
  const { network } = membersOf(entry);
  if (typeof network !== "string" || networks.find(network, 1) || networks.find(network, 2)) return false;
  if (x402Version === 2) return /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/.test(network);
  const isName = /^[a-z][-a-z0-9]{1,63}$/.test(network);
  return isName && findSlip(network, networks.names, mostTyposOf(network)) === undefined;
}

/** Another facilitator than this one may settle it: its schemes, tokens and contracts are not known. */
function isMinor({ mistake, got }: Finding): boolean {
  const isOther = mistake === "unknown-scheme" || mistake === "permit-facilitator";
  return isOther || (mistake === "wrong-asset" && isAddress(got));
}

/** The part of a URL that names a resource, without its query. */
function addressOf(text: string): string {
  const url = URL.parse(text);
  if (url === null) return text;
  // Frameworks write the names of this machine as they like.
  if (isLoopbackUrl(text)) url.hostname = "127.0.0.1";
  return `${url.origin}${url.pathname}`;
}
