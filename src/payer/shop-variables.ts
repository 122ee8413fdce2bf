/** The frameworks that `x402-kit init` supports; each has a folder in `templates`. */
export const frameworks = ["express", "hono", "fastify", "next"] as const;

export type Framework = (typeof frameworks)[number];

/** The values for the environment variables of a shop and a buyer with a local facilitator. */
export type ShopVariables = {
  /** The facilitator's URL; ends in `/v1`. */
  url: string;
  apiKey: string;
  network: { name: string; caip2: string; payTo: string; asset: string };
  /** The private key of a payer with funds. */
  payerKey: string | undefined;
};

/** The environment variables of the shop and the buyer in `templates`, with the names that `x402-kit judge` uses. */
export function shopVariables({ url, apiKey, network, payerKey }: ShopVariables): [string, string][] {
  return [
    ["X402_FACILITATOR_URL", url],
    ["X402_API_KEY", apiKey],
    ["X402_NETWORK", network.name],
    ["X402_CAIP2", network.caip2],
    ["X402_PAY_TO", network.payTo],
    ["X402_ASSET", network.asset],
    ...(payerKey === undefined ? [] : [["X402_PRIVATE_KEY", payerKey] as [string, string]]),
  ];
}

/** Renders variables as lines of a `.env` file. */
export function renderVariables(variables: Iterable<readonly [string, string]>): string {
  return Array.from(variables, ([name, value]) => `${name}=${value}`).join("\n");
}
