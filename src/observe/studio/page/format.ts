import type { TimeField } from "../../../methods/payment-times.ts";
import { formatAmount, type TokenUnits } from "../../../protocol/token-units.ts";
import type { PaymentSummary } from "../../timeline/payment-view.ts";
import type { ClockTime } from "./snippets.ts";

/** A time of day with milliseconds. */
export function formatTime(at: number): string {
  const date = new Date(at);
  return `${date.toLocaleTimeString("en-GB")}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** Shortens hashes, addresses and long numbers in the middle; other texts stay unchanged. */
export function shorten(text: string | null): string {
  if (text === null) return "";
  return /^0x.{15}/i.test(text) || isLongNumber(text) ? `${text.slice(0, 6)}…${text.slice(-4)}` : text;
}

/** True for a number of computer-generated length, such as a Permit2 nonce, which has up to 78 digits. */
export function isLongNumber(text: string): boolean {
  return /^\d{30,}$/.test(text);
}

/** A relative time for a list, or the date if older than a day. Both parameters are Unix milliseconds. */
export function formatAgo(at: number, now: number): string {
  const seconds = Math.floor((now - at) / 1_000);
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return new Date(at).toISOString().slice(0, 10);
}

/** Splits a camel-case name into words: `networkIsEnabled` becomes “network is enabled”. */
export function inWords(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

export function formatMs(ms: number | null): string {
  if (ms === null) return "";
  return ms < 10
    ? `${ms.toFixed(1)} ms`
    : ms < 10_000
      ? `${Math.round(ms)} ms`
      : `${(ms / 1000).toFixed(1)} s`;
}

/** Describes a signed time: its distance from the time of the request, and its value in Unix seconds and as a date. */
export function describeSigned(seconds: string, requested: ClockTime): { distance: string; exact: string } {
  const value = Number(seconds);
  if (value === 0) return { distance: "always", exact: "0" };
  if (!Number.isSafeInteger(value) || value > lastShown) return { distance: seconds, exact: "" };
  const ahead = value - requested.seconds;
  const distance = `${formatSpan(Math.abs(ahead))} ${ahead < 0 ? "before" : "after"} ${whoseTime[requested.clock]}`;
  return { distance, exact: `${seconds} · ${formatDate(value)}` };
}

const whoseTime: Readonly<Record<ClockTime["clock"], string>> = {
  chain: "the chain's time at the request",
  machine: "the request, by this machine's clock",
};

/** Formats Unix seconds as a date. */
export function formatDate(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000", "");
}

/** An amount in the token's smallest unit, followed by whole tokens if the token is known. */
export function formatBoth(amount: string, token: TokenUnits | null): string {
  return token === null ? amount : `${amount} (${formatAmount(amount, token)})`;
}

/** Formats a gas price in wei as gwei; undefined if it is unknown. */
export function formatGwei(wei: string | number | boolean | undefined): string | undefined {
  return wei === undefined ? undefined : `${Number(wei) / 1e9} gwei`;
}

/** Indents JSON; other texts stay unchanged. */
export function indentJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** A time to sign: Unix seconds, or seconds relative to the chain's time. */
type SignedTime = { at: number } | { fromNow: number };

const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const fromNow =
  /^(?:now)?\s*([+-])\s*(\d{1,12})\s*(s(?:ec(?:onds?)?)?|m(?:in(?:utes?)?)?|h(?:ours?)?|d(?:ays?)?)?$/;

/** The accepted forms of a time. */
export const timeForms = "now − 60 s, now + 10 min, unix seconds, or a date such as 2026-01-31T12:00Z";

/** The last second that a JavaScript date can represent. */
const lastShown = 8_640_000_000_000;

/** Reads `now − 60 s`, `+10 min`, Unix seconds, or an ISO 8601 date; otherwise undefined. */
export function parseTime(text: string): SignedTime | undefined {
  const said = text.trim().replaceAll("−", "-");
  if (/^\d{1,15}$/.test(said)) return { at: Number(said) };
  if (said === "now") return { fromNow: 0 };
  const [, sign, count, unit = "s"] = fromNow.exec(said) ?? [];
  const seconds = units[unit.charAt(0)];
  if (sign !== undefined && seconds !== undefined) {
    return { fromNow: Number(`${sign}${count}`) * seconds };
  }
  // A date without a zone would depend on this machine's time zone.
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(said)) return undefined;
  const at = Math.floor(Date.parse(said) / 1_000);
  return Number.isNaN(at) || at < 0 ? undefined : { at };
}

/** Writes a time as the pay route expects it. */
export function writeTime(time: SignedTime): string {
  if ("at" in time) return `${time.at}`;
  return `now${time.fromNow < 0 ? "-" : "+"}${Math.abs(time.fromNow)}`;
}

/** Writes seconds relative to the chain's time, for the form. */
export function writeFromNow(seconds: number): string {
  return `now ${seconds < 0 ? "−" : "+"} ${Math.abs(seconds)} s`;
}

/** The form's initial value for a time: valid immediately, for ten minutes. */
export function usualTime({ isEnd }: TimeField): string {
  return isEnd ? writeFromNow(600) : "0";
}

/** A time in seconds, as a date, and relative to the chain's time, as far as the latter is known. */
export function describeTime(time: SignedTime, now: number | undefined): string {
  const at = "at" in time ? time.at : now === undefined ? undefined : now + time.fromNow;
  if (at === 0) return "0 (always)";
  const ahead = "fromNow" in time ? time.fromNow : now === undefined ? undefined : time.at - now;
  const distance =
    ahead === undefined
      ? undefined
      : ahead === 0
        ? "the chain's time"
        : `${formatSpan(Math.abs(ahead))} ${ahead < 0 ? "before" : "after"} the chain's time`;
  const date =
    at !== undefined && at >= 0 && at <= lastShown
      ? new Date(at * 1_000).toISOString().replace("T", " ").replace(".000Z", " UTC")
      : undefined;
  return [at, date, distance].filter((part) => part !== undefined).join(" · ");
}

/** Seconds; from two minutes on, also in minutes, hours or days. */
function formatSpan(seconds: number): string {
  const [size, name] = seconds >= 172_800 ? [86_400, "days"] : seconds >= 7_200 ? [3_600, "h"] : [60, "min"];
  const exact = `${seconds} s`;
  return seconds < 120 ? exact : `${exact} (${Math.round((seconds / size) * 10) / 10} ${name})`;
}

/** The outcome of a payment in one word, the same everywhere. */
export type Status = "settled" | "valid" | "refused" | "undecided" | "open" | "unpaid";

/** In the order in which the filters show them. */
export const statusWords: Readonly<Record<Status, string>> = {
  settled: "Settled",
  valid: "Verified",
  refused: "Refused",
  undecided: "Undecided",
  open: "In progress",
  unpaid: "Unpaid",
};

export const statuses = Object.keys(statusWords) as Status[];

type Answered = Pick<PaymentSummary, "verify" | "settle" | "unrouted" | "settledAt" | "shop">;

export function statusOf({ verify, settle, unrouted, settledAt, shop }: Answered): Status {
  if (unrouted !== null) return "refused";
  const last = settle ?? verify;
  if (last === null && shop !== null) return statusAtShop(shop);
  if (last === null || last.outcome === "open") return settledAt === null ? "open" : "settled";
  // A settled payment stays settled, whatever is answered to a repeat.
  if (last.outcome === "settled" || settledAt !== null) return "settled";
  if (last.outcome === "valid") return "valid";
  return ["pending", "undetermined", "abandoned"].includes(last.outcome) ? "undecided" : "refused";
}

/** The status of a payment that the facilitator was never asked about. */
function statusAtShop({ outcome, status }: NonNullable<PaymentSummary["shop"]>): Status {
  if (outcome === "open" || outcome === "unpaid") return outcome;
  return outcome === "left" || (status !== null && status < 400) ? "undecided" : "refused";
}

/** Describes what the shop did without the facilitator's decision. */
function noteOfShop({ shop, verify, settle, settledAt }: Answered): string {
  if (shop === null || shop.outcome === "open") return "";
  if (shop.outcome === "unpaid") return "asks for a payment";
  if (shop.outcome !== "answered") return shop.outcome === "down" ? "the shop is down" : "the client left";
  if (settle === null && verify === null) return `${shop.status} by the shop, facilitator not asked`;
  const isOdd = (settledAt !== null || verify?.outcome === "valid") && (shop.status ?? 0) >= 400;
  return isOdd ? `the shop answered ${shop.status}` : "";
}

/** Why the status is not a plain success: the reason, its operation, and the number of requests. */
export function noteOf(payment: Answered): string {
  const { verify, settle, unrouted, settledAt } = payment;
  if (unrouted !== null) return unrouted.status === 404 ? "no such route" : "another method is needed";
  const ofShop = noteOfShop(payment);
  if (ofShop !== "") return ofShop;
  const [name, last] = settle === null ? ["verify", verify] : ["settle", settle];
  if (last === null) return "";
  const { outcome, reason, count } = last;
  const often = count > 1 ? ` ×${count}` : "";
  switch (outcome) {
    case "open":
      return `${name} is under way`;
    case "settled":
      return often === "" ? "" : `settle${often}`;
    case "valid":
      return `no settle yet${often}`;
    case "pending":
      return `sent, not mined yet${often}`;
    default: {
      const short = shortReason(reason ?? outcome);
      return settledAt === null ? `${short}${often}` : `then ${name}: ${short}${often}`;
    }
  }
}

/** A reason without the prefix that most reasons share. */
export function shortReason(reason: string): string {
  return reason.replace(/^invalid_(exact_evm_payload_)?/, "");
}

/** The outcomes or reasons of verify and settle with their full messages. */
export function titleOfNote({ verify, settle, unrouted }: Answered): string {
  if (unrouted !== null) return unrouted.message;
  return [verify, settle]
    .flatMap((one) => (one === null ? [] : [one.reason ?? one.outcome, one.message ?? []]))
    .flat()
    .join("\n");
}

/** The payer, or else the request. */
export function whoOf({ payer, payerName, unrouted, verify, settle, shop }: PaymentSummary): string {
  if (payer !== null) return payerName ?? shorten(payer);
  if (shop !== null) return `${shop.method} ${shop.path}`;
  if (unrouted !== null) return `${unrouted.method} ${unrouted.path}`;
  // A request without a valid key is refused before its body is read.
  return (settle ?? verify)?.status === 401 ? "not read" : "unreadable";
}
