import type { FastifyInstance } from "fastify";
import { readOpenFileLimit } from "../../config/open-files.ts";
import type { Database } from "../../ledger/database/database.ts";
import type { RefusalContext } from "../../observe/explain/explanations.ts";
import type { ListChannels } from "../../observe/studio/channel-views.ts";
import type { PaymentChain } from "../../observe/studio/payment-detail.ts";
import type { Resend } from "../../observe/studio/payment-routes.ts";
import { createTimeline, type Timeline } from "../../observe/timeline/timeline.ts";
import { openTracing } from "../../observe/tracing/tracing.ts";
import { localOrganization } from "../../payer/test-keys.ts";
import { testPayers } from "../../payer/test-payers.ts";
import type { Address } from "../../protocol/hex.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import { usualPayTo } from "../../protocol/signed-payment.ts";
import { createApp } from "../../service/http/app.ts";
import { listen } from "../../service/http/connections/listen.ts";
import { localConnectionCapacity } from "../../service/http/connections/open-connections.ts";
import { explainListenError, refuseForeign } from "../../service/http/local-server.ts";
import { KitError } from "../../util/errors.ts";
import { apiExampleOf, closeRoute, controlRoutes, describeControlApi } from "../control/control.ts";
import { curlOf, type HarnessDescription, originOf } from "../control/description.ts";
import { startFaults } from "../faults/create-faults.ts";
import { createJournalStore } from "../journal/journal.ts";
import type { Chains } from "../setup/chains.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import { hasOwnClock, makeCore } from "./harness-core.ts";
import { createPaymentExplainer } from "./payment-explainer.ts";
import {
  createReplaceableCore,
  createRewind,
  type HarnessPart,
  type ReplaceableCore,
  type Rewind,
} from "./replaceable-core.ts";
import type { ControlledHarness, RunningHarness, StartOptions } from "./running-harness.ts";
import { type Session, setFaultsAgain } from "./session.ts";
import { placesOf, settingsOf } from "./session-settings.ts";

/**
 * Runs the service against started chains, which then end with it.
 *
 * @param prepared the parts that were prepared while the chains started
 * @throws {KitError} if it cannot listen; nothing is left running then
 */
export async function serveHarness(
  started: Chains,
  options: StartOptions,
  { openDatabase, studio }: Prepared,
): Promise<RunningHarness> {
  const { host, port, logger } = options;
  const { saved } = options.state ?? {};
  const serviceId = crypto.randomUUID();
  const chains = Object.values(started.chains);
  const parts: HarnessPart[] = [];
  let core: ReplaceableCore | undefined;
  let rewind: Rewind | undefined;
  let session: (() => Promise<Session>) | undefined;
  let app: FastifyInstance | undefined;
  let description: HarnessDescription | undefined;
  let ended: Promise<void> | undefined;

  async function end(): Promise<void> {
    let unsaved: unknown;
    try {
      await rewind?.settled();
      await core?.stop();
      await app?.close();
      // The saved state must include the outcome of requests in flight.
      await core?.settled();
      await saveState().catch((error: unknown) => {
        unsaved = error;
      });
      await core?.close();
      for (const part of parts) await part.close?.();
    } finally {
      // Whatever failed before, leave no node running.
      await started.stop();
    }
    if (unsaved !== undefined) throw unsaved;
  }

  async function saveState(): Promise<void> {
    // A harness that failed to start has nothing to save.
    if (description !== undefined && session !== undefined) await options.state?.save(await session());
  }

  const close = () => {
    ended ??= end();
    return ended;
  };

  try {
    for (const { node } of chains) {
      node.fork?.onFailure(({ message, hints }) => logger.error({ hints }, message));
    }
    const context: RefusalContext = {
      contracts: options.facilitatorContracts,
      payTo: options.payTo,
      networks: options.knownNetworks,
      tokens: Object.fromEntries(
        chains.map(({ network, asset, tokens }) => [network.name, [asset, ...Object.values(tokens)]]),
      ),
      ownClockSince() {
        const since = chains.map((chain) => chain.ownClockSince());
        return hasOwnClock(options)
          ? "started"
          : (["started", "moved"] as const).find((one) => since.includes(one));
      },
    };
    const setup: Setup = { serviceId, options, studio, context };
    const { journal, explainer, timeline, ...observed } = observeService(started, setup);
    const startedFaults = await startFaults(chains, serviceId, journal?.onExchange);
    parts.push(startedFaults, ...observed.parts, ...(await traceService(observed.openTimeline)));
    const rpcUrlOf = startedFaults.serviceRpcUrl;
    core = await createReplaceableCore(async () =>
      makeCore({ chains, rpcUrlOf, serviceId, database: await openDatabase() }, options),
    );
    const { faults } = startedFaults;
    const again = saved?.faults ?? [];
    const isHold = ({ kind }: { kind: string }) => kind === "hold-blocks";
    // Set before the start, so that pending transactions, which are sent again, stay pending.
    await setFaultsAgain(faults, again.filter(isHold), started.chains);
    // All other faults are set after the start, which needs the chains to answer.
    const starting = core.start((network, account) => started.chains[network]?.mined.get(account));
    starting.catch(() => {});
    const { organizations, channels } = core;
    rewind = createRewind({ chains, core, parts, seed: options.seed });
    const { save } = rewind;
    session = async () => {
      requireSavable(chains, options);
      const [faultsNow, story] = [await faults.list(), await explainer.tell()];
      const about = { setting: placesOf(options), settings: settingsOf(options) };
      return { version: 1, ...about, ...(await save()), story, faults: [...faultsNow] };
    };
    const harness: Omit<RunningHarness, "app"> = {
      get description() {
        if (description === undefined) throw new Error("the harness is not ready yet");
        return description;
      },
      chains: started.chains,
      organizations,
      pids: started.pids,
      onFailure: started.onFailure,
      faults,
      journal,
      timeline,
      payments: explainer,
      context,
      forkFailures: () => chains.flatMap(({ node }) => node.fork?.failures() ?? []),
      ...rewind,
      session,
      close,
      [Symbol.asyncDispose]: close,
    };

    app = await createHarnessApp(core, harness, setup);
    startedFaults.breakAnswers(app.server);
    await app.register(async (local) =>
      serveLocalRoutes(
        local,
        harness,
        { chain: explainer.chain, channels: (limit) => channels.list({ limit }) },
        setup,
      ),
    );
    await starting;
    await setFaultsAgain(
      faults,
      again.filter((fault) => !isHold(fault)),
      started.chains,
    );
    const origin = await listen(app, { host, port }).catch((error: unknown) => {
      // The port was free a moment ago.
      throw explainListenError(error, host, port);
    });
    const shop = await serveShop(setup);
    if (shop !== undefined) parts.push(shop);
    description = { ...describeHarness(origin, chains, options), ...(shop && { shop: shop.described }) };
    return { app, ...harness };
  } catch (error) {
    await close();
    throw error;
  }
}

type Studio = typeof import("../../observe/studio/serve-studio.ts");

/** The parts that need no chains; `studio` only if it is served. */
type Prepared = { openDatabase: () => Promise<Database>; studio: Studio | undefined };

/** Shared by the functions that create the parts of a harness. */
type Setup = {
  serviceId: string;
  options: StartOptions;
  studio: Studio | undefined;
  context: RefusalContext;
};

/** Creates the observers that keep the service's history, if the options allow anyone to read it. */
function observeService(started: Chains, { serviceId, options, studio, context }: Setup) {
  let opened: Timeline | undefined;
  /** Returns the timeline; creates it for callers that need one even without journal and studio. */
  const openTimeline = () => {
    opened ??= createTimeline(serviceId, {
      readTime: studio && ((network) => started.chains[network]?.now()),
      earlier: options.state?.saved?.story,
    });
    return opened;
  };
  const timeline = options.journal || studio ? openTimeline() : undefined;
  const journal = timeline && options.journal ? createJournalStore(timeline, context.tokens) : undefined;
  const explainer = createPaymentExplainer(started.chains, timeline, context);
  const parts: HarnessPart[] = [{ afterReset: () => opened?.clear(), close: () => opened?.close() }];
  if (journal !== undefined) parts.push({ afterReset: journal.clear });
  parts.push({ afterReset: explainer.forget });
  return { timeline, openTimeline, journal, explainer, parts };
}

/** Creates the facilitator's HTTP app, configured for use on a local machine. */
function createHarnessApp(
  { facilitator, organizations, catalog, checkHealth }: ReplaceableCore,
  harness: ControlledHarness,
  { serviceId, options, studio }: Setup,
): Promise<FastifyInstance> {
  const { knownNetworks, corsOrigins, host, allowHosts, claims, open, logger } = options;
  return createApp({
    facilitator,
    organizations,
    catalog,
    checkHealth,
    serviceId,
    knownNetworks,
    corsOrigins,
    listening: { host, allowHosts },
    claims,
    logger,
    now: () => Date.now(),
    connections: localConnectionCapacity(readOpenFileLimit()),
    noProxies: true,
    docs: true,
    async describeBeside() {
      const { paths, schemas } = studio?.describeStudioApi() ?? { paths: {}, schemas: {} };
      return {
        paths: { ...paths, ...describeControlApi() },
        schemas,
        example: await apiExampleOf(harness.description),
      };
    },
    callerWithoutKey: open && (() => organizations.authenticate(localOrganization.apiKey)),
  });
}

/** Adds the routes for this machine only: the control of the harness, MCP and the studio. */
async function serveLocalRoutes(
  local: FastifyInstance,
  harness: Omit<RunningHarness, "app">,
  { chain, channels }: { chain: PaymentChain; channels: ListChannels },
  { options, studio, context }: Setup,
): Promise<void> {
  refuseForeign(local, options);
  if (options.open !== undefined) closeRoute(local, options.open);
  await local.register(async (scope) => controlRoutes(scope, harness, options.onNews));
  if (options.mcp !== undefined) mcpRoute(local, options.mcp, () => originOf(harness.description));
  const { timeline } = harness;
  if (timeline === undefined || studio === undefined) return;
  const resend: Resend = {
    send: async (operation, body) =>
      (await import("../control/pay.ts")).postPayment(harness.description, operation, body),
    describeCurl: (operation, body) => curlOf(harness.description, operation, body),
  };
  await local.register(async (scope) =>
    studio.serveStudio(scope, { timeline, resend, chain, channels, ...context }),
  );
}

/** Starts the recording proxy in front of the shop, if one is configured. */
async function serveShop({ serviceId, options }: Setup) {
  const { shop, knownNetworks: networks = builtInNetworks, logger, host, allowHosts } = options;
  if (shop === undefined) return undefined;
  const { startShopProxy } = await import("../shop/shop-proxy.ts");
  const listening = { host, allowHosts };
  const proxy = await startShopProxy({ ...shop, serviceId, networks, logger, listening });
  return { ...proxy, described: { url: proxy.url, target: shop.target } };
}

/** Adds the MCP server, which is opened at the first request. */
function mcpRoute(
  local: FastifyInstance,
  open: NonNullable<StartOptions["mcp"]>,
  readOrigin: () => string,
): void {
  let handler: ReturnType<typeof open> | undefined;
  local.route({
    method: ["GET", "POST", "DELETE"],
    url: "/mcp",
    async handler(request, reply) {
      handler ??= open(readOrigin());
      return (await handler).call(this, request, reply);
    },
  });
}

/** @throws {KitError} if another harness could not continue from these chains */
function requireSavable(chains: readonly HarnessChain[], { seed }: StartOptions): void {
  if (seed === undefined && chains.every(({ node }) => node.fork === undefined)) return;
  throw new KitError("A session with --seed or --fork cannot be saved", {
    hints: ["Chains of --seed begin the same each time, and those of --fork with the real ones."],
  });
}

/** Traces the service if an OpenTelemetry SDK is registered. Restarted at a reset, when transaction nonces start again. */
async function traceService(timeline: () => Timeline): Promise<readonly HarnessPart[]> {
  let tracing = await openTracing(timeline);
  if (tracing === undefined) return [];
  return [
    {
      async afterReset() {
        tracing?.close();
        tracing = await openTracing(timeline);
      },
      close: () => tracing?.close(),
    },
  ];
}

export function describeHarness(
  origin: string,
  chains: readonly HarnessChain[],
  { seed, recipient = localOrganization.recipient, organizations = [], payTo = "contract" }: StartOptions,
): HarnessDescription {
  const { id, apiKey } = localOrganization;
  return {
    ...(seed !== undefined && { seed }),
    ...(payTo !== "contract" && { payToPolicy: payTo }),
    facilitator: { url: `${origin}/v1` },
    organization: { id, apiKey, recipient },
    ...(organizations.length > 0 && {
      organizations: organizations.map(({ id, name, apiKey, networks }) => ({
        id,
        name,
        apiKey,
        recipients: Object.fromEntries([...networks].map(([network, { recipient }]) => [network, recipient])),
      })),
    }),
    payers: Object.fromEntries(
      Object.entries(testPayers).map(([name, { address, privateKey }]) => [name, { address, privateKey }]),
    ),
    networks: Object.fromEntries(
      chains.map((chain) => [
        chain.network.name,
        describeChain(chain, usualPayTo({ ...chain, payTo }, recipient)),
      ]),
    ),
  };
}

function describeChain(
  { network, publicRpcUrl: rpcUrl, facilitatorContract, asset, tokens, hasBlacklist, node }: HarnessChain,
  payTo: Address,
) {
  const { name, chainId, caip2, tier, nativeCoin } = network;
  const added = builtInNetworks.named(name) === undefined ? { tier, nativeCoin } : {};
  const described = { chainId, caip2, rpcUrl, facilitatorContract, payTo, asset, ...added };
  if (node.fork === undefined) return { ...described, tokens };
  const { kind, blockNumber } = node.fork;
  return { ...described, fork: { block: Number(blockNumber), from: kind, hasBlacklist } };
}
