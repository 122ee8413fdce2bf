import type { MethodView } from "../../../methods/method-view.ts";
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
  const { way, x402Version } = payment;
  const limit = memberOf(payment, "amount")?.value;
  return [
    ...Object.entries(way?.terms ?? {}).map(([name, value]) => `    ${name}: "${value}",`),
    ...(way?.takesLess && limit !== undefined ? [`    max: ${limit}n,`] : []),
    ...(x402Version === 1 ? ["    x402Version: 1,"] : []),
  ];
}

/** How a payment is paid, in words. */
export function wayOf({ way, x402Version }: PaymentDetail): string | null {
  return way && `${way.label} · x402 v${x402Version ?? 1}`;
}

/** The body for `POST /harness/pay` for a payment by that method, with an amount in the smallest unit. */
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
type SignedTime = { name: string; value: string; isEnd: boolean };

export function signedTimes({ signedMembers, way }: PaymentDetail): readonly SignedTime[] {
  return signedMembers
    .filter(({ kind }) => kind === "time")
    .map(({ label, value }) => ({ name: lastPart(label), value, isEnd: label === way?.end }))
    .sort((one, other) => Number(one.isEnd) - Number(other.isEnd));
}

/** A signed member is named by its whole path, and an option of `pay` by the last part of it. */
const lastPart = (label: string) => label.split(".").at(-1) ?? label;

/** The signed times, from the time of the request on its chain, where they are not what `pay` signs anyway. */
function timesOf(payment: PaymentDetail) {
  const now = requestTimeOf(payment).seconds;
  return signedTimes(payment).flatMap(({ name, value, isEnd }) => {
    const at = Number(value);
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
