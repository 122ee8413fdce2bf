import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { openEndpoints } from "../../chain/deploy/endpoints.ts";
import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import type { ServeConfig } from "../../config/serve-config.ts";
import type { ReadableChain } from "../../observe/capture/chain-questions.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import { tokensOf } from "../../protocol/known-token.ts";
import { addToBuiltIn, findAsset } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { createAdminApp } from "./admin-app.ts";

const noContract = `0x${"00".repeat(20)}` as const;

/** The admin listener of a service that is configured so. It asks nodes by connections of its own, and only to read. */
export function createAdmin(
  { networks }: Pick<ServeConfig, "networks">,
  admin: NonNullable<ServeConfig["admin"]>,
  { timeline, logger }: { timeline: Timeline; logger: FastifyBaseLogger },
): FastifyInstance {
  const contractOf = (tier: "mainnet" | "testnet") =>
    networks.find((network) => network.tier === tier)?.facilitatorContract ?? noContract;
  const endpoints = new Map<string, ReturnType<typeof openEndpoints>>();
  const app = createAdminApp({
    timeline,
    ...admin,
    context: {
      contracts: { mainnet: contractOf("mainnet"), testnet: contractOf("testnet") },
      networks: addToBuiltIn(networks),
      tokens: tokensOf(networks),
    },
    chainOf(request) {
      const network = networks.find(({ name }) => name === request.knownNetwork.name);
      if (network === undefined) return undefined;
      const opened = endpoints.get(network.name) ?? openEndpoints(network);
      endpoints.set(network.name, opened);
      return readableChain(network, request, opened);
    },
    logger,
  });
  app.addHook("onClose", async () => {
    for (const rpc of [...endpoints.values()].flat()) rpc.close();
  });
  return app;
}

/** The chain with the payment's asset, or with the first one where the payment names another. */
function readableChain(
  network: NetworkConfig,
  { requirements }: PaymentRequest,
  endpoints: ReturnType<typeof openEndpoints>,
): ReadableChain | undefined {
  const { assets } = network;
  const asset = findAsset(assets, requirements.asset) ?? assets[0];
  if (asset === undefined) return undefined;
  return {
    ...{ network, asset },
    facilitatorContract: network.facilitatorContract,
    async ask(method, ...params): Promise<RpcAnswer> {
      for (const endpoint of endpoints) {
        try {
          const [answer] = await endpoint.ask([{ method, params }]);
          if (answer !== undefined) return answer;
        } catch (error) {
          if (!(error instanceof UndeterminedError)) throw error;
        }
      }
      throw new UndeterminedError(`No RPC endpoint of ${network.name} answers`);
    },
  };
}
