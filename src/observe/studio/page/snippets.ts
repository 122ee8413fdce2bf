import { type TimeField, timeFields } from "../../../methods/payment-times.ts";
import { type LocalTokenName, nameOfLocalToken } from "../../../payer/local-chains.ts";
import { invalidReasons, isSituation, settleErrorReason } from "../../../protocol/catalogue.ts";
import type { PaymentDetail } from "../../timeline/payment-view.ts";

/** A time in unix seconds, and whose clock says it. */
export type ClockTime = { seconds: number; clock: "chain" | "machine" };

/** When a payment was asked for: the chain's time, or this machine's where that is not known, as with the mock. */
export function requestTimeOf({ chainTime, firstSeenAt }: PaymentDetail): ClockTime {
  return chainTime === null
    ? { seconds: Math.floor(firstSeenAt / 1_000), clock: "machine" }
    : { seconds: Number(chainTime), clock: "chain" };
}

/** The last operation of a payment, as far as it has come. */
export function operationOf({ settle }: Pick<PaymentDetail, "settle">): "verify" | "settle" {
  return settle === null ? "verify" : "settle";
}

/**
 * A vitest test with this kit that makes the same payment, right or wrong, and expects the same answer.
 *
 * @param facilitatorContract of its network, where that is known: a payment to another address needs a harness that lets it
 */
export function vitestOf(payment: PaymentDetail, facilitatorContract?: string): string {
  const { network, payerName, settle, required, amount } = payment;
  const { payTo } = required ?? {};
  const isStraight =
    payTo !== undefined &&
    facilitatorContract !== undefined &&
    payTo.toLowerCase() !== facilitatorContract.toLowerCase();
  const operation = operationOf({ settle });
  const isAgain = isRepeated(payment);
  const asset = localTokenOf(payment);
  return [
    isStraight
      ? '// The global setup that vitest.config.ts names needs: export default createGlobalSetup({ payTo: "any" })'
      : '// vitest.config.ts needs: test: { globalSetup: ["x402-facilitator-kit/vitest/global-setup"] }',
    'import { expect } from "vitest";',
    'import { test } from "x402-facilitator-kit/vitest";',
    "",
    `test("${payerName} pays on ${network}", async ({ harness }) => {`,
    ...timeLines(payment),
    `  const { ${isAgain ? "request" : operation} } = await harness.pay({`,
    `    network: "${network}",`,
    `    payer: "${payerName}",`,
    `    amount: ${required?.amount ?? amount}n,`,
    ...(isStraight ? [`    payTo: "${payTo}",`] : []),
    ...(asset === undefined ? [] : [`    asset: "${asset}",`]),
    ...methodLines(payment),
    ...signedLines(payment),
    "  });",
    ...(isAgain ? ["  const settle = await harness.settle(request);"] : []),
    `  expect(${operation}.body).toMatchObject(${expectedAnswer(payment)});`,
    "});",
    "",
  ].join("\n");
}

/** The name of the token of a payment, where it is not the network's own. */
export function localTokenOf({ asset }: PaymentDetail): LocalTokenName | undefined {
  return nameOfLocalToken(asset ?? "");
}

/** How it is paid, where that is not what `pay` does anyway. */
function methodLines(payment: PaymentDetail): readonly string[] {
  const limit = memberOf(payment, "amount")?.value;
  switch (payKindOf(payment)) {
    case "eip3009":
      return payment.x402Version === 1 ? ["    x402Version: 1,"] : [];
    case "permit2":
      return ['    method: "permit2",'];
    case "upto":
      return ['    scheme: "upto",', ...(limit === undefined ? [] : [`    max: ${limit}n,`])];
  }
}

/** The payment methods, as the form and the command name them. */
export const payKinds = ["eip3009", "permit2", "upto"] as const;

export type PayKind = (typeof payKinds)[number];

export function payKindOf({ method }: PaymentDetail): PayKind {
  if (method === "exact-permit2") return "permit2";
  return method === "upto-permit2" ? "upto" : "eip3009";
}

/** How a payment is paid, in words. */
export function wayOf(payment: PaymentDetail): string | null {
  if (payment.method === null) return null;
  const way = { eip3009: "exact · EIP-3009", permit2: "exact · Permit2", upto: "upto · Permit2" };
  return `${way[payKindOf(payment)]} · x402 v${payment.x402Version ?? 1}`;
}

/** The body for `POST /harness/pay` for a payment of that kind, with an amount in the smallest unit. */
export function payTermsOf(kind: PayKind, amount: string, x402Version: number): Record<string, unknown> {
  switch (kind) {
    case "eip3009":
      return { amount, units: true, x402Version };
    case "permit2":
      return { amount, units: true, method: "permit2" };
    case "upto":
      return { amount, units: true, max: amount };
  }
}

function memberOf({ signedMembers }: PaymentDetail, kind: "recipient" | "amount") {
  return signedMembers.find((member) => member.kind === kind);
}

/** Returns true if it was settled, and then asked for again and refused for that. */
function isRepeated({ settle, ledger }: PaymentDetail): boolean {
  const isRefused = settle?.outcome === "invalid" && settle.reason === "invalid_transaction_state";
  return isRefused && settle.count > 1 && (ledger === "settled" || ledger === "recovered");
}

/** The part of an answer that a test checks. A v1 settle has a word of its own for most reasons. */
function expectedAnswer({ settle, verify, x402Version }: PaymentDetail): string {
  const { reason = null, situation = null } = settle ?? verify ?? {};
  if (reason === null) return `{ ${settle === null ? "isValid" : "success"}: true }`;
  if (settle === null) return `{ invalidReason: "${reason}" }`;
  const known = invalidReasons.find((one) => one === reason);
  const answered =
    known === undefined || !isSituation(situation)
      ? reason
      : settleErrorReason({ reason: known, situation }, x402Version ?? 1);
  return `{ errorReason: "${answered}" }`;
}

/** Further off than this, a time was not meant from now: it is in milliseconds, or 0. */
const farOffSeconds = 31_536_000;
/** As `harness.pay` has it where nothing is said. */
const usualSeconds = 600;

/** A time that was signed, by the name that `pay` takes it by; undefined of one that was not. */
type SignedTime = { name: string; value: string | undefined; isEnd: boolean };

export function signedTimes(payment: PaymentDetail): readonly (SignedTime & { field: TimeField["name"] })[] {
  const isPermit = payKindOf(payment) !== "eip3009";
  return timeFields.map(({ name, isEnd }) => {
    if (!isPermit) return { name, field: name, value: payment.signed?.[name], isEnd };
    const [own, label] = isEnd ? ["deadline", "deadline"] : ["validAfter", "witness.validAfter"];
    return { name: own, field: name, value: payment.signed?.[label], isEnd };
  });
}

/** The signed times, from the time of the request on its chain, where they are not what `pay` signs anyway. */
function timesOf(payment: PaymentDetail) {
  const now = requestTimeOf(payment).seconds;
  return signedTimes(payment).flatMap(({ name, value, isEnd }) => {
    const at = Number(value ?? "0");
    const ahead = at - now;
    // What had settled before it expired is settled first by the test, too.
    const isUsual = isEnd
      ? Math.abs(ahead - usualSeconds) < 30 || (ahead < usualSeconds && isRepeated(payment))
      : at === 0;
    if (isUsual) return [];
    if (Math.abs(ahead) > farOffSeconds) return { name, code: `${value}n`, isFromNow: false };
    return { name, code: `now ${ahead < 0 ? "-" : "+"} ${Math.abs(ahead)}n`, isFromNow: true };
  });
}

function timeLines(payment: PaymentDetail): readonly string[] {
  if (!timesOf(payment).some(({ isFromNow }) => isFromNow)) return [];
  return [`  const now = await harness.networks["${payment.network}"].now();`];
}

/** The signed values that differ from those that `pay` signs. */
function signedLines(payment: PaymentDetail): readonly string[] {
  const { signed, required } = payment;
  if (signed === null || required === null) return [];
  const kind = payKindOf(payment);
  const [option, amount] = kind === "eip3009" ? ["authorization", "value"] : ["permit", "amount"];
  const [to, value] = [memberOf(payment, "recipient")?.value, memberOf(payment, "amount")?.value];
  const isOther = (one: string | undefined, of: string | undefined) =>
    of !== undefined && one?.toLowerCase() !== of.toLowerCase();
  const members = [
    ...(isOther(to, required.payTo) ? [`to: "${to}"`] : []),
    // Of scheme “upto” it is the maximum.
    ...(kind !== "upto" && isOther(value, required.amount) ? [`${amount}: ${value}n`] : []),
    ...timesOf(payment).map(({ name, code }) => `${name}: ${code}`),
  ];
  return members.length === 0 ? [] : [`    ${option}: { ${members.join(", ")} },`];
}

/** The scenario of fixtures and mock that ends a request as this payment did; undefined while it is open. */
export function scenarioOf({ verify, settle, x402Version }: PaymentDetail): string | undefined {
  const operation = operationOf({ settle });
  const view = settle ?? verify;
  const version = x402Version === 2 ? ".v2" : "";
  switch (view?.outcome) {
    case "valid":
    case "settled":
      return `${operation}${version}.success`;
    case "pending":
      return `settle${version}.pending`;
    case "undetermined":
      return `${operation}${version}.unavailable`;
    case "invalid":
      return view.reason === null ? undefined : `${operation}${version}.${view.reason}`;
    default:
      return undefined;
  }
}
