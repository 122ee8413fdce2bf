import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { ConfigurationError } from "../errors/configuration.ts";
import { networkNames } from "../protocol/networks.ts";
import { address, uint256String } from "../protocol/primitives.ts";
import type { Chains } from "./chains.ts";
import type { HarnessDescription } from "./description.ts";

/** What `POST /harness/fund` takes: `amount` in the asset's smallest unit. */
export const fundRequestSchema = z.object({
  network: z.enum(networkNames),
  to: address,
  amount: uint256String,
});

/**
 * The routes by which other terminals act on a running harness. They are served beside the service on the same
 * address, and exist nowhere but here.
 */
export function controlRoutes(
  app: FastifyInstance,
  { describe, chains }: { describe: () => HarnessDescription; chains: Chains["chains"] },
): void {
  app.setErrorHandler((error, _request, reply) => {
    const refused = error instanceof ConfigurationError || error instanceof z.ZodError;
    const message = error instanceof Error ? error.message : String(error);
    return reply.code(refused ? 400 : 500).send({ error: message });
  });

  app.get("/harness", describe);

  app.post("/harness/fund", async (request) => {
    const { network, to, amount } = fundRequestSchema.parse(request.body);
    const chain = chains[network];
    if (chain === undefined) {
      throw new ConfigurationError([
        {
          name: "network",
          problem: `${network} is not running here; running: ${Object.keys(chains).join(", ")}`,
        },
      ]);
    }
    await chain.fund(to, amount);
    return { network, to, amount: amount.toString(), asset: chain.asset.address };
  });
}
