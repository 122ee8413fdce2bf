import type { Address } from "../../protocol/hex.ts";
import { type HarnessDescription, payToOf } from "../control/description.ts";
import { requireRunning } from "../control/find-harness.ts";

type Headers = { Authorization: string };

/** What a shop of the public server packages is made with, `@x402/express`, `@x402/hono` and `@x402/next` alike. */
export type ShopConfig = {
  /** For `new HTTPFacilitatorClient(…)`: where the facilitator is, and the organization's key. */
  facilitator: {
    url: string;
    createAuthHeaders(): Promise<{ verify: Headers; settle: Headers; supported: Headers }>;
  };
  /** What a route costs: `paymentMiddleware({ "GET /report": { accepts } }, server)`. */
  accepts: {
    scheme: "exact";
    network: `eip155:${number}`;
    payTo: Address;
    price: { asset: Address; amount: string; extra: { name: string; version: string } };
  };
};

/** @throws {KitError} when the network does not run there */
export function describeShop(
  description: HarnessDescription,
  { network, price, apiKey }: { network: string; price: bigint; apiKey: string },
): ShopConfig {
  const running = requireRunning(description, network);
  const { caip2, asset } = running;
  const headers = { Authorization: `Bearer ${apiKey}` };
  const { address, name, version } = asset;
  return {
    facilitator: {
      url: description.facilitator.url,
      createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
    },
    accepts: {
      scheme: "exact",
      network: caip2,
      payTo: payToOf(description, [network, running], apiKey),
      price: { asset: address, amount: `${price}`, extra: { name, version } },
    },
  };
}
