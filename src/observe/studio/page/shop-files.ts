import {
  type Framework,
  renderVariables,
  type ShopVariables,
  shopVariables,
} from "../../../payer/shop-variables.ts";
import { builtInNetworks } from "../../../protocol/networks.ts";

/** The files that `x402-kit init` writes, by path in the folder `templates`: the same text, so it is tested once. */
const templates = import.meta.glob<string>(
  [
    "../../../../templates/{common,server,express,fastify,hono,next}/**/*.{js,json}",
    "!../../../../templates/*/{open-shop,shop-command,shop.test}.js",
  ],
  {
    query: "?raw",
    import: "default",
    eager: true,
  },
);

const readTemplate = (path: string) => templates[`../../../../templates/${path}`] ?? "";

/** The files of each framework, in reading order. */
const filesOf: Readonly<Record<Framework, readonly string[]>> = {
  express: ["express/shop.js", "server/redeliver.js"],
  hono: ["hono/shop.js", "server/redeliver.js"],
  fastify: ["fastify/shop.js", "fastify/payments.js", "server/redeliver.js"],
  next: ["next/app/report/route.js", "next/app/layout.js"],
};

/** The parts of a facilitator that a shop needs. */
export type ShopView = Omit<ShopVariables, "network"> & {
  network: {
    name: string;
    caip2: string;
    payTo: string;
    asset: { address: string; name: string; version: string; decimals: number };
  };
};

/** A part of the setup: its file name, or a heading for commands to type, and its text. */
export type SetupPart = { name: string; text: string };

/** Everything for a shop and a buyer with this facilitator, in the order to paste it. */
export function setupOf(framework: Framework, { network, ...facilitator }: ShopView): readonly SetupPart[] {
  const { dependencies, scripts } = JSON.parse(readTemplate(`${framework}/package.json`));
  const variables = shopVariables({ ...facilitator, network: { ...network, asset: network.asset.address } });
  return [
    {
      name: "commands",
      text: [
        "npm init -y && npm pkg set type=module",
        `npm install ${Object.keys(dependencies).join(" ")}`,
      ].join("\n"),
    },
    { name: ".env", text: renderVariables(variables) },
    ...filesOf[framework].map((path) => ({
      name: path.slice(path.indexOf("/") + 1),
      text: readTemplate(path)
        .replace("../server/", "./")
        .replace('"$0.01"', () => priceIn(network))
        .trimEnd(),
    })),
    { name: "buyer.js", text: readTemplate("common/buyer.js").trimEnd() },
    {
      name: "to start them",
      text: [framework === "next" ? `npx ${scripts.shop}` : scripts.shop, scripts.buy].join("\n"),
    },
  ];
}

/** A price of 0.01 token, written as the public packages do if the token is the network's USDC. */
function priceIn({ name, asset }: ShopView["network"]): string {
  const usdc = builtInNetworks.named(name)?.usdc;
  if (usdc?.address.toLowerCase() === asset.address.toLowerCase()) return '"$0.01"';
  const amount = 10n ** BigInt(Math.max(asset.decimals - 2, 0));
  const extra = `{ name: ${JSON.stringify(asset.name)}, version: ${JSON.stringify(asset.version)} }`;
  return `{ asset: "${asset.address}", amount: "${amount}", extra: ${extra} }`;
}
