import { timeFields } from "../../../methods/exact-eip3009/payment-times.ts";
import { invalidReasons, isSituation, settleErrorReason } from "../../../protocol/catalogue.ts";
import type { PaymentDetail } from "../payment-view.ts";

/** A time in unix seconds, and whose clock says it. */
export type ClockTime = { seconds: number; clock: "chain" | "machine" };

/** When a payment was asked for: the chain's time, or this machine's where that is not known, as with the mock. */
export function requestTimeOf({ chainTime, firstSeenAt }: PaymentDetail): ClockTime {
  return chainTime === null
    ? { seconds: Math.floor(firstSeenAt / 1_000), clock: "machine" }
    : { seconds: Number(chainTime), clock: "chain" };
}

/** A vitest test with this kit that makes the same payment, right or wrong, and expects the same answer. */
export function vitestOf(payment: PaymentDetail): string {
  const { network, payerName, x402Version, settle, required, amount } = payment;
  const operation = settle === null ? "verify" : "settle";
  const isAgain = isRepeated(payment);
  return [
    '// vitest.config.ts needs: test: { globalSetup: ["x402-facilitator-kit/vitest/global-setup"] }',
    'import { expect } from "vitest";',
    'import { test } from "x402-facilitator-kit/vitest";',
    "",
    `test("${payerName} pays on ${network}", async ({ harness }) => {`,
    ...timeLines(payment),
    `  const { ${isAgain ? "request" : operation} } = await harness.pay({`,
    `    network: "${network}",`,
    `    payer: "${payerName}",`,
    `    amount: ${required?.amount ?? amount}n,`,
    ...(x402Version === 2 ? ["    x402Version: 2,"] : []),
    ...signedLines(payment),
    "  });",
    ...(isAgain ? ["  const settle = await harness.settle(request);"] : []),
    `  expect(${operation}.body).toMatchObject(${expectedAnswer(payment)});`,
    "});",
    "",
  ].join("\n");
}

/** Whether it was settled, and then asked for again and refused for that. */
function isRepeated({ settle, ledger }: PaymentDetail): boolean {
  const isRefused = settle?.outcome === "invalid" && settle.reason === "invalid_transaction_state";
  return isRefused && settle.count > 1 && (ledger === "settled" || ledger === "recovered");
}

/** What a test needs to know of an answer. A v1 settle has a word of its own for most reasons. */
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

/** The signed times, from the time of the request on its chain, where they are not what `pay` signs anyway. */
function timesOf(payment: PaymentDetail) {
  const { signed } = payment;
  const now = requestTimeOf(payment).seconds;
  return timeFields.flatMap(({ name, isEnd }) => {
    const at = Number(signed?.[name] ?? "0");
    const ahead = at - now;
    // What had settled before it expired is settled first by the test, too.
    const isUsual = isEnd
      ? Math.abs(ahead - usualSeconds) < 30 || (ahead < usualSeconds && isRepeated(payment))
      : at === 0;
    if (isUsual) return [];
    if (Math.abs(ahead) > farOffSeconds) return { name, code: `${signed?.[name]}n`, isFromNow: false };
    return { name, code: `now ${ahead < 0 ? "-" : "+"} ${Math.abs(ahead)}n`, isFromNow: true };
  });
}

function timeLines(payment: PaymentDetail): readonly string[] {
  if (!timesOf(payment).some(({ isFromNow }) => isFromNow)) return [];
  return [`  const now = await harness.networks["${payment.network}"].now();`];
}

/** What was signed otherwise than `pay` signs it. */
function signedLines(payment: PaymentDetail): readonly string[] {
  const { signed, required } = payment;
  if (signed === null || required === null) return [];
  const isOther = (name: string, of: string | undefined) =>
    of !== undefined && signed[name]?.toLowerCase() !== of.toLowerCase();
  const members = [
    ...(isOther("to", required.payTo) ? [`to: "${signed.to}"`] : []),
    ...(isOther("value", required.amount) ? [`value: ${signed.value}n`] : []),
    ...timesOf(payment).map(({ name, code }) => `${name}: ${code}`),
  ];
  return members.length === 0 ? [] : [`    authorization: { ${members.join(", ")} },`];
}

/** The scenario of fixtures and mock that ends a request as this payment did; undefined while it is open. */
export function scenarioOf({ verify, settle, x402Version }: PaymentDetail): string | undefined {
  const operation = settle === null ? "verify" : "settle";
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

/** What a shop is configured with. */
type ShopView = {
  url: string;
  apiKey: string;
  caip2: string;
  payTo: string;
  asset: { address: string; name: string; version: string; decimals: number };
};

/** The configuration of a shop for one of the public packages. */
export function shopOf(framework: Framework, { url, apiKey, caip2, payTo, asset }: ShopView): string {
  // A hundredth of a token.
  const price = 10n ** BigInt(Math.max(asset.decimals - 2, 0));
  const facilitator = [
    "const facilitator = new HTTPFacilitatorClient({",
    `  url: "${url}",`,
    "  createAuthHeaders: async () => {",
    `    const headers = { Authorization: "${apiKey}" };`,
    "    return { verify: headers, settle: headers, supported: headers };",
    "  },",
    "});",
    `const server = new x402ResourceServer(facilitator).register("${caip2}", new ExactEvmScheme());`,
    "const routes = {",
    '  "GET /report": {',
    "    accepts: {",
    `      scheme: "exact", network: "${caip2}", payTo: "${payTo}",`,
    `      price: { asset: "${asset.address}", amount: "${price}", extra: { name: "${asset.name}", version: "${asset.version}" } },`,
    "    },",
    "  },",
    "};",
  ];
  const { first, module, middleware, uses } = frameworks[framework];
  return [
    first,
    `import { ${middleware}, x402ResourceServer } from "${module}";`,
    'import { HTTPFacilitatorClient } from "@x402/core/server";',
    'import { ExactEvmScheme } from "@x402/evm/exact/server";',
    "",
    ...facilitator,
    ...uses,
  ].join("\n");
}

/** How each of the public packages is used. */
const frameworks = {
  express: {
    first: 'import express from "express";',
    module: "@x402/express",
    middleware: "paymentMiddleware",
    uses: ["const app = express();", "app.use(paymentMiddleware(routes, server));"],
  },
  hono: {
    first: 'import { Hono } from "hono";',
    module: "@x402/hono",
    middleware: "paymentMiddleware",
    uses: ["const app = new Hono();", "app.use(paymentMiddleware(routes, server));"],
  },
  next: {
    first: "// middleware.ts",
    module: "@x402/next",
    middleware: "paymentProxy",
    uses: [
      "export const proxy = paymentProxy(routes, server);",
      'export const config = { matcher: ["/report"] };',
    ],
  },
};

export type Framework = keyof typeof frameworks;
