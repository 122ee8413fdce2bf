import type { MethodView } from "../../../methods/method-view.ts";
import { type LocalTokenName, nameOfLocalToken } from "../../../payer/local-chains.ts";
import { invalidReasons, isSituation, settleErrorReason } from "../../../protocol/catalogue.ts";
import type { PaymentDetail } from "../../timeline/payment-view.ts";

/** A time in Unix seconds, and the clock it is from. */
export type ClockTime = { seconds: number; clock: "chain" | "machine" };

/** The time of a payment's request: the chain's, or this machine's if that is unknown, as with the mock. */
export function requestTimeOf({ chainTime, firstSeenAt }: PaymentDetail): ClockTime {
  return chainTime === null
    ? { seconds: Math.floor(firstSeenAt / 1_000), clock: "machine" }
    : { seconds: Number(chainTime), clock: "chain" };
}

/** The last operation that a payment got to. */
export function operationOf({ settle }: Pick<PaymentDetail, "settle">): "verify" | "settle" {
  return settle === null ? "verify" : "settle";
}

/**
 * Writes a vitest test that makes the same payment with this kit, right or wrong, and expects the same answer.
 *
 * @param facilitatorContract its network's contract, if known: a payment to another address needs a harness that allows it
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

/** The name of a payment's token, if it is not the network's USDC. */
export function localTokenOf({ asset }: PaymentDetail): LocalTokenName | undefined {
  return nameOfLocalToken(asset ?? "");
}

/** The payment method's options, as far as they differ from the defaults of `pay`. */
function methodLines(payment: PaymentDetail): readonly string[] {
  const { way, x402Version } = payment;
  const limit = memberOf(payment, "amount")?.value;
  return [
    ...Object.entries(way?.terms ?? {}).map(([name, value]) => `    ${name}: "${value}",`),
    ...(way?.takesLess && limit !== undefined ? [`    max: ${limit}n,`] : []),
    ...(x402Version === 1 ? ["    x402Version: 1,"] : []),
  ];
}

/** The payment method and x402 version, for people. */
export function wayOf({ way, x402Version }: PaymentDetail): string | null {
  return way && `${way.label} · x402 v${x402Version ?? 1}`;
}

/** The body for `POST /harness/pay` for a payment with this method; the amount is in the smallest unit. */
export function payTermsOf(
  way: MethodView | null,
  amount: string,
  x402Version: number,
): Record<string, unknown> {
  const max = way?.takesLess ? amount : undefined;
  return { amount, units: true, x402Version, ...way?.terms, max };
}

function memberOf({ signedMembers }: PaymentDetail, kind: "recipient" | "amount") {
  return signedMembers.find((member) => member.kind === kind);
}

/** True if a settled payment was sent again and refused for that reason. */
function isRepeated({ settle, ledger }: PaymentDetail): boolean {
  const isRefused = settle?.outcome === "invalid" && settle.reason === "invalid_transaction_state";
  return isRefused && settle.count > 1 && (ledger === "settled" || ledger === "recovered");
}

/** The part of an answer that a test checks. A v1 settle has its own name for most reasons. */
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

/** A time further from the request than this is not relative to it: it is in milliseconds, or 0. */
const farOffSeconds = 31_536_000;
/** The default of `harness.pay`. */
const usualSeconds = 600;

/** A signed time, under the name that `pay` uses for it. */
type SignedTime = { name: string; value: string; isEnd: boolean };

export function signedTimes({ signedMembers, way }: PaymentDetail): readonly SignedTime[] {
  return signedMembers
    .filter(({ kind }) => kind === "time")
    .map(({ label, value }) => ({ name: lastPart(label), value, isEnd: label === way?.end }))
    .sort((one, other) => Number(one.isEnd) - Number(other.isEnd));
}

/** A signed member is named by its whole path; an option of `pay` is only the last part. */
const lastPart = (label: string) => label.split(".").at(-1) ?? label;

/** The signed times, relative to the chain's time at the request, if they differ from the defaults of `pay`. */
function timesOf(payment: PaymentDetail) {
  const now = requestTimeOf(payment).seconds;
  return signedTimes(payment).flatMap(({ name, value, isEnd }) => {
    const at = Number(value);
    const ahead = at - now;
    // A payment that settled before it expired also settles first in the test.
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

/** The signed values that differ from what `pay` signs. */
function signedLines(payment: PaymentDetail): readonly string[] {
  const { way, required } = payment;
  if (way === null || required === null) return [];
  const [to, amount] = [memberOf(payment, "recipient"), memberOf(payment, "amount")];
  const isOther = (one: string, of: string | undefined) =>
    of !== undefined && one.toLowerCase() !== of.toLowerCase();
  const members = [
    ...(to && isOther(to.value, required.payTo) ? [`${lastPart(to.label)}: "${to.value}"`] : []),
    // A maximum is an option of its own.
    ...(amount && !way.takesLess && isOther(amount.value, required.amount)
      ? [`${lastPart(amount.label)}: ${amount.value}n`]
      : []),
    ...timesOf(payment).map(({ name, code }) => `${name}: ${code}`),
  ];
  return members.length === 0 ? [] : [`    ${way.option}: { ${members.join(", ")} },`];
}

/** The scenario of fixtures and mock that ends a request like this payment did; undefined while it is in progress. */
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
