/** The frameworks of shops, each with a public package for x402. */
export const frameworks = ["express", "hono", "next"] as const;

export type Framework = (typeof frameworks)[number];

/** What a shop is configured with. */
export type ShopView = {
  url: string;
  apiKey: string;
  caip2: string;
  payTo: string;
  asset: { address: string; name: string; version: string; decimals: number };
};

const packages: Readonly<Record<Framework, string>> = {
  express: "express @x402/express @x402/core @x402/evm",
  hono: "hono @hono/node-server @x402/hono @x402/core @x402/evm",
  next: "@x402/next @x402/core @x402/evm",
};

/** What installs the packages of a shop; its modules are ES modules. */
export function installOf(framework: Framework): string {
  const install = `npm install ${packages[framework]}`;
  return framework === "next" ? install : `npm pkg set type=module && ${install}`;
}

/** A whole shop for one of the public packages, which runs as it is pasted. */
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
    '      scheme: "exact",',
    `      network: "${caip2}",`,
    `      payTo: "${payTo}",`,
    "      price: {",
    `        asset: "${asset.address}",`,
    `        amount: "${price}",`,
    `        extra: { name: "${asset.name}", version: "${asset.version}" },`,
    "      },",
    "    },",
    "  },",
    "};",
    "",
  ];
  const imports = (name: string, what: string) => [
    'import { HTTPFacilitatorClient } from "@x402/core/server";',
    'import { ExactEvmScheme } from "@x402/evm/exact/server";',
    `import { ${what}, x402ResourceServer } from "${name}";`,
  ];
  switch (framework) {
    case "express":
      return [
        "// shop.js, started by: node shop.js",
        ...imports("@x402/express", "paymentMiddleware"),
        'import express from "express";',
        "",
        ...facilitator,
        "const app = express();",
        "app.use(paymentMiddleware(routes, server));",
        'app.get("/report", (_request, response) => response.json({ report: "all is well" }));',
        "app.listen(3000);",
      ].join("\n");
    case "hono":
      return [
        "// shop.js, started by: node shop.js",
        'import { serve } from "@hono/node-server";',
        ...imports("@x402/hono", "paymentMiddleware"),
        'import { Hono } from "hono";',
        "",
        ...facilitator,
        "const app = new Hono();",
        "app.use(paymentMiddleware(routes, server));",
        'app.get("/report", (context) => context.json({ report: "all is well" }));',
        "serve({ fetch: app.fetch, port: 3000 });",
      ].join("\n");
    case "next":
      return [
        "// proxy.ts, beside app/ (before Next 16: middleware.ts, and it exports `middleware`)",
        ...imports("@x402/next", "paymentProxy"),
        "",
        ...facilitator,
        "export const proxy = paymentProxy(routes, server);",
        'export const config = { matcher: ["/report"] };',
        "",
        "// app/report/route.ts",
        '// export const GET = () => Response.json({ report: "all is well" });',
      ].join("\n");
  }
}
