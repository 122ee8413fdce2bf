import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { openEndpoints } from "../../chain/deploy/endpoints.ts";
import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import type { NetworkConfig, ServeConfig } from "../../config/serve-config.ts";
import type { Claims } from "../../ledger/ledger.ts";
import type { RefusalContext } from "../../observe/explain/explanations.ts";
import { createUseFinder, type ReadableChain } from "../../observe/studio/chain-questions.ts";
import { channelsRoute, type ListChannels } from "../../observe/studio/channel-views.ts";
import { paymentRoutes } from "../../observe/studio/payment-routes.ts";
import type { PaymentRecord } from "../../observe/timeline/record.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import { isBytes32 } from "../../protocol/hex.ts";
import { addToBuiltIn, findAsset } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { tokensOf } from "../../protocol/token-units.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { createInternalApp } from "../http/app.ts";
import { foreign } from "../http/local-server.ts";
import { settlementAsRecord } from "./settlement-record.ts";

const noContract = `0x${"00".repeat(20)}` as const;

/** The admin listener of a service that has one configured. It has its own connections to nodes, and only reads. */
export function createAdmin(
  { networks }: Pick<ServeConfig, "networks">,
  admin: NonNullable<ServeConfig["admin"]>,
  {
    timeline,
    ledger,
    listChannels,
    logger,
  }: Pick<AdminOptions, "timeline" | "ledger" | "listChannels" | "logger">,
): FastifyInstance {
  const contractOf = (tier: "mainnet" | "testnet") =>
    networks.find((network) => network.tier === tier)?.facilitatorContract ?? noContract;
  const endpoints = new Map<string, ReturnType<typeof openEndpoints>>();
  const app = createAdminApp({
    timeline,
    ledger,
    listChannels,
    ...admin,
    context: {
      contracts: { mainnet: contractOf("mainnet"), testnet: contractOf("testnet") },
      payTo: networks[0]?.payTo,
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

/** The chain with the payment's asset, or with the first one if the payment names an unknown asset. */
function readableChain(
  network: NetworkConfig,
  { requirements }: PaymentRequest,
  endpoints: ReturnType<typeof openEndpoints>,
): ReadableChain | undefined {
  const { assets } = network;
  const asset = findAsset(assets, requirements.asset) ?? assets[0];
  if (asset === undefined) return undefined;
  return {
    network,
    asset,
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

export type AdminOptions = {
  /** The payments to show. */
  timeline: Timeline;
  /** Holds payments that this process has not seen. */
  ledger: Pick<Claims, "find">;
  /** The channels opened through this service. */
  listChannels: ListChannels;
  /** The host that it will listen on, which requests may name. */
  host: string;
  /** Requests without it are refused. */
  token: string;
  context: RefusalContext;
  /** The chain of a payment; undefined if it is not served. */
  chainOf(request: PaymentRequest): ReadableChain | undefined;
  logger: FastifyBaseLogger;
};

/** Transactions are read from a chain, whose requests cost money. */
const mostChainReads = 2;

/**
 * Shows the newest payments of `serve` to its operators, on a separate server: `GET /payments`, `GET /payments/{id}`,
 * `GET /payments/{id}/transaction` and `GET /events`. It changes nothing. Every request needs the token and the
 * server's own Host; no answer contains a signature, a key or a secret.
 */
export function createAdminApp(options: AdminOptions): FastifyInstance {
  const { timeline, ledger, listChannels, host, token, context, chainOf, logger } = options;
  const app = createInternalApp(logger, { max: 50, maxPerAddress: 25 });

  const isToken = createTokenCheck(token);
  app.addHook("onRequest", async (request, reply) => {
    const problem = foreign(request.headers, { host });
    if (problem !== undefined) return reply.code(403).send({ error: `Refused: ${problem}` });
    if (isToken(request.headers.authorization)) return;
    return reply
      .code(401)
      .header("www-authenticate", "Bearer")
      .send({ error: "ADMIN_TOKEN of `serve` is needed: Authorization: Bearer TOKEN" });
  });
  app.addHook("onSend", async (_, reply) => {
    reply.headers({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
  });
  app.setNotFoundHandler((_, reply) =>
    reply.code(404).send({
      error: "There are GET /payments, /payments/{id}, /payments/{id}/transaction and /events",
    }),
  );
  app.setErrorHandler((error, request, reply) => {
    const status: unknown = Reflect.get(Object(error), "statusCode");
    if (typeof status === "number" && status >= 400 && status < 500) {
      return reply.code(status).send({ error: "The request cannot be read" });
    }
    if (error instanceof TooManyReads) return reply.code(429).send({ error: error.message });
    // Without its cause, which may quote a node.
    if (error instanceof UndeterminedError) return reply.code(503).send({ error: error.message });
    if (error instanceof KitError) return reply.code(409).send({ error: error.message, hints: error.hints });
    request.log.error({ err: error }, "admin: a request failed");
    return reply.code(500).send({ error: "It failed; the log says why" });
  });

  app.register(async (scope) => {
    let reads = 0;
    async function readChain<T>(
      { request }: PaymentRecord,
      read: (request: PaymentRequest, chain: ReadableChain) => Promise<T>,
    ): Promise<T> {
      const chain = request && chainOf(request);
      if (request === undefined || chain === undefined) {
        throw new KitError("The network of this payment is not served here");
      }
      if (reads >= mostChainReads) throw new TooManyReads();
      reads++;
      try {
        return await read(request, chain);
      } finally {
        reads--;
      }
    }
    channelsRoute(scope, { timeline, list: listChannels });
    paymentRoutes(scope, {
      timeline,
      context,
      chain: {
        transaction: (record) =>
          readChain(record, async (_, chain) =>
            (await import("../../observe/studio/chain-questions.ts")).transactionOf(record, chain),
          ),
        authorizationUse: createUseFinder(chainOf),
      },
      async findSettlement(id) {
        const settlement = isBytes32(id) ? await ledger.find(id) : null;
        return settlement === null ? undefined : settlementAsRecord(settlement);
      },
    });
  });
  return app;
}

class TooManyReads extends Error {
  constructor() {
    super(`${mostChainReads} questions to chains are under way; try again`);
  }
}

/** Compares in constant time, whatever is sent. */
function createTokenCheck(token: string): (authorization: string | undefined) => boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  const expected = digest(`Bearer ${token}`);
  return (authorization = "") => timingSafeEqual(digest(authorization), expected);
}
