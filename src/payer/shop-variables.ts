/** The frameworks of `x402-kit init`: each has a folder in `templates`. */
export const frameworks = ["express", "hono", "fastify", "next"] as const;

export type Framework = (typeof frameworks)[number];

/** The environment variables of a shop and a buyer of a local facilitator. */
export type ShopVariables = {
  /** Of the facilitator; ends in `/v1`. */
  url: string;
  apiKey: string;
  network: { name: string; caip2: string; payTo: string; asset: string };
  /** Of a payer who has money. */
  payerKey: string | undefined;
};

/** The variables of the shop and the buyer in `templates`, by the names that `x402-kit judge` gives them. */
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

/** Variables as lines of a `.env`. */
export function renderVariables(variables: Iterable<readonly [string, string]>): string {
  return Array.from(variables, ([name, value]) => `${name}=${value}`).join("\n");
}
