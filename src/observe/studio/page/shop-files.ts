import {
  type Framework,
  renderVariables,
  type ShopVariables,
  shopVariables,
} from "../../../payer/shop-variables.ts";
import { builtInNetworks } from "../../../protocol/networks.ts";

/** The files that `x402-kit init` writes, by path in the folder `templates`: the same text, so that it is tested once. */
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

/** Its files, in the order in which one reads them. */
const filesOf: Readonly<Record<Framework, readonly string[]>> = {
  express: ["express/shop.js", "server/redeliver.js"],
  hono: ["hono/shop.js", "server/redeliver.js"],
  fastify: ["fastify/shop.js", "fastify/payments.js", "server/redeliver.js"],
  next: ["next/app/report/route.js", "next/app/layout.js"],
};

/** A facilitator as a shop needs it. */
export type ShopView = Omit<ShopVariables, "network"> & {
  network: {
    name: string;
    caip2: string;
    payTo: string;
    asset: { address: string; name: string; version: string; decimals: number };
  };
};

/** A part of the set-up: the name of a file, or what is to be typed, and its text. */
export type SetupPart = { name: string; text: string };

/** All that a shop and a buyer of this facilitator are made of, to be pasted one after the other. */
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

/** A hundredth of the token: in the words of the public packages, where it is the one that they know on the network. */
function priceIn({ name, asset }: ShopView["network"]): string {
  const usdc = builtInNetworks.named(name)?.usdc;
  if (usdc?.address.toLowerCase() === asset.address.toLowerCase()) return '"$0.01"';
  const amount = 10n ** BigInt(Math.max(asset.decimals - 2, 0));
  const extra = `{ name: ${JSON.stringify(asset.name)}, version: ${JSON.stringify(asset.version)} }`;
  return `{ asset: "${asset.address}", amount: "${amount}", extra: ${extra} }`;
}
