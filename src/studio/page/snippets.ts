import type { PaymentDetail, PaymentSummary } from "../payment-view.ts";

/** A vitest test with this kit that makes the same payment and expects the same outcome. */
export function vitestOf({
  network,
  payerName,
  amount,
  x402Version,
  verify,
  settle,
}: PaymentSummary): string {
  const operation = settle === null ? "verify" : "settle";
  const reason = (settle ?? verify)?.reason ?? null;
  const expected =
    reason === null
      ? `{ ${operation === "settle" ? "success" : "isValid"}: true }`
      : `{ ${operation === "settle" ? "errorReason" : "invalidReason"}: "${reason}" }`;
  return [
    'import { expect } from "vitest";',
    'import { test } from "x402-facilitator-kit/vitest";',
    "",
    `test("${payerName} pays on ${network}", async ({ harness }) => {`,
    `  const { ${operation} } = await harness.pay({`,
    `    network: "${network}",`,
    `    payer: "${payerName}",`,
    `    amount: ${amount}n,`,
    ...(x402Version === 2 ? ["    x402Version: 2,"] : []),
    "  });",
    `  expect(${operation}.body).toMatchObject(${expected});`,
    "});",
    "",
  ].join("\n");
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
  const imports = (name: string, what: string) => [
    `import { ${what}, x402ResourceServer } from "${name}";`,
    'import { HTTPFacilitatorClient } from "@x402/core/server";',
    'import { ExactEvmScheme } from "@x402/evm/exact/server";',
    "",
  ];
  switch (framework) {
    case "express":
      return [
        'import express from "express";',
        ...imports("@x402/express", "paymentMiddleware"),
        ...facilitator,
        "const app = express();",
        "app.use(paymentMiddleware(routes, server));",
      ].join("\n");
    case "hono":
      return [
        'import { Hono } from "hono";',
        ...imports("@x402/hono", "paymentMiddleware"),
        ...facilitator,
        "const app = new Hono();",
        "app.use(paymentMiddleware(routes, server));",
      ].join("\n");
    case "next":
      return [
        "// middleware.ts",
        ...imports("@x402/next", "paymentProxy"),
        ...facilitator,
        "export const proxy = paymentProxy(routes, server);",
        'export const config = { matcher: ["/report"] };',
      ].join("\n");
  }
}

export type Framework = "express" | "hono" | "next";
