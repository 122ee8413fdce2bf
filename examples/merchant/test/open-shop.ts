import { createServer } from "node:http";
import type { Harness } from "x402-facilitator-kit/harness";
import { createShop } from "../src/shop.ts";
import { listen } from "./listen.ts";

/** Opens the shop, as in production but for its facilitator, until the end of the block. */
export async function openShop(harness: Harness<"base">): Promise<AsyncDisposable & { report: string }> {
  const shop = createShop({
    facilitatorUrl: harness.facilitator.url,
    apiKey: harness.organization.apiKey,
    payTo: harness.networks.base.facilitatorContract.address,
  });
  const { origin, close } = await listen(createServer(shop));
  return { report: `${origin}/report`, [Symbol.asyncDispose]: close };
}
