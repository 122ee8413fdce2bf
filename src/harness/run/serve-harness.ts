import type { FastifyInstance } from "fastify";
import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import { readOpenFileLimit } from "../../config/open-files.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Database } from "../../ledger/database/database.ts";
import { addRows, createMemoryDatabases, readRows } from "../../ledger/database/sqlite/memory-databases.ts";
import { dropLeases } from "../../ledger/leases.ts";
import type { LedgerTables } from "../../ledger/rows.ts";
import type { Resend } from "../../observe/studio/payment-routes.ts";
import { createTimeline, type Timeline } from "../../observe/timeline/timeline.ts";
import { openTracing } from "../../observe/tracing/open-tracing.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import { localOrganization } from "../../published/test-keys.ts";
import { createApp } from "../../service/http/app.ts";
import { listen } from "../../service/http/connections/listen.ts";
import { localConnectionCapacity } from "../../service/http/connections/open-connections.ts";
import { explainListenError, refuseForeign } from "../../service/http/local-server.ts";
import { createOrganizations } from "../../service/organizations/create-organizations.ts";
import { reserve } from "../../service/organizations/recipient.ts";
import { createCore } from "../../service/service.ts";
import type { ServiceOptions } from "../../service/service-parts.ts";
import { KitError } from "../../util/errors.ts";
import { apiExampleOf, closeRoute, controlRoutes } from "../control/control.ts";
import { curlOf, type HarnessDescription } from "../control/description.ts";
import { startFaults } from "../faults/create-faults.ts";
import { createJournalStore } from "../journal/journal.ts";
import type { HarnessChain } from "../setup/chain.ts";
import type { Chains } from "../setup/chains.ts";
import { describeHarness } from "./describe-harness.ts";
import { createLocalOrganizations, withTestKeys } from "./local-organizations.ts";
import { createPaymentExplainer } from "./payment-explainer.ts";
import { createReplaceableCore, type MadeCore, type ReplaceableCore } from "./replaceable-core.ts";
import { createRewind, type Rewind } from "./rewind.ts";
import type { HarnessPart, RunningHarness } from "./running-harness.ts";
import type { StartOptions } from "./start-options.ts";

/** The pepper of a database that lives as long as the harness and holds one published key. */
const localPepper = "x402-facilitator-kit local harness";

/**
 * Databases that hold the organizations, all alike, in memory: nothing is to outlive the harness, not even when it is
 * killed. The first one is filled at once, while the nodes still start.
 */
export function prepareDatabases(options: StartOptions): () => Promise<Database> {
  const { networks: names, knownNetworks = builtInNetworks, facilitatorContracts, assets = {} } = options;
  const reserved = reserve(
    names.flatMap((name) => {
      const network = knownNetworks.named(name);
      if (network === undefined) return [];
      const facilitatorContract = facilitatorContracts[network.tier];
      return [{ name, facilitatorContract, assets: [assets[name] ?? network.usdc] }];
    }),
  );
  const open = createMemoryDatabases((db) =>
    createLocalOrganizations(
      createOrganizations({ db, pepper: localPepper, now: Date.now, reserved }),
      options,
    ),
  );
  let first: Promise<Database> | undefined = open();
  // Reported when it is taken.
  first.catch(() => {});
  return () => {
    const opened = first ?? open();
    first = undefined;
    return opened;
  };
}

/**
 * Runs the service against chains that are in place, which then end with it.
 *
 * @param prepared what was ready before the chains were
 * @throws {KitError} when it cannot listen; nothing is left running then
 */
export async function serveHarness(
  started: Chains,
  options: StartOptions,
  {
    openDatabase,
    studio,
  }: {
    openDatabase: () => Promise<Database>;
    /** Where the studio is served. */
    studio: typeof import("../../observe/studio/serve-studio.ts") | undefined;
  },
): Promise<RunningHarness> {
  const { host, port, logger, open } = options;
  const { facilitatorContracts: contracts, knownNetworks } = options;
  const serviceId = crypto.randomUUID();
  const chains = Object.values(started.chains);
  const parts: HarnessPart[] = [];
  let core: ReplaceableCore | undefined;
  let rewind: Rewind | undefined;
  let app: FastifyInstance | undefined;
  let description: HarnessDescription | undefined;
  let ended: Promise<void> | undefined;

  async function end(): Promise<void> {
    try {
      await rewind?.settled();
      await core?.stop();
      await app?.close();
      // What the requests under way were answered belongs to it.
      await core?.settled();
      await saveState().catch((err: unknown) => logger.error({ err }, "the state could not be saved"));
      await core?.close();
      for (const part of parts) await part.close?.();
    } finally {
      // Whatever fails before: no node is left.
      await started.stop();
    }
  }

  async function saveState(): Promise<void> {
    // What did not come to listen has nothing to save.
    if (description !== undefined && rewind !== undefined) await options.state?.save(await rewind.save());
  }

  const close = () => {
    ended ??= end();
    return ended;
  };

  const describe = (): HarnessDescription => {
    if (description === undefined) throw new Error("the harness is not ready yet");
    return description;
  };

  try {
    for (const { node } of chains) {
      node.fork?.onFailure(({ message, hints }) => logger.error({ hints }, message));
    }
    let opened: Timeline | undefined;
    const openTimeline = () => {
      opened ??= createTimeline(serviceId, {
        readTime: studio && ((network) => started.chains[network]?.now()),
      });
      return opened;
    };
    const timeline = options.journal || studio ? openTimeline() : undefined;
    const context = {
      contracts,
      payTo: options.payTo,
      networks: knownNetworks,
      tokens: Object.fromEntries(chains.map(({ network, asset }) => [network.name, [asset]])),
      hasOwnClock: () => hasOwnClock(options) || chains.some((chain) => chain.hasMovedTime()),
    };
    const journal = timeline && options.journal ? createJournalStore(timeline, context.tokens) : undefined;
    const startedFaults = await startFaults(chains, { serviceId, onExchange: journal?.onExchange });
    parts.push(startedFaults);
    parts.push({ afterReset: () => opened?.clear(), close: () => opened?.close() });
    if (journal !== undefined) parts.push({ afterReset: journal.clear });
    const explainer = createPaymentExplainer(started.chains, timeline, context);
    parts.push({ afterReset: explainer.forget });
    parts.push(...(await traceService(openTimeline)));
    const networks = chains.map((chain) =>
      configure(chain, startedFaults.serviceRpcUrl(chain), options.payTo),
    );
    const { operator, recoverer } = harnessAccounts;
    const fixed = {
      networks,
      signers: [createLocalSigner(operator.privateKey)],
      recoverer: options.recovery === false ? undefined : createLocalSigner(recoverer.privateKey),
      serviceId,
    } as const;
    core = await createReplaceableCore(async () =>
      makeCore({ ...fixed, database: await openDatabase() }, options),
    );
    // Its chains have to answer meanwhile.
    const starting = core.start((network, account) => started.chains[network]?.mined.get(account));
    starting.catch(() => {});
    const { organizations, facilitator, catalog, checkHealth } = core;
    rewind = createRewind({ chains, core, parts, seed: options.seed });
    const { nextAuthorizationNonce, snapshot, restore, reset } = rewind;
    const harness: Omit<RunningHarness, "description" | "app"> = {
      chains: started.chains,
      organizations,
      pids: started.pids,
      onFailure: started.onFailure,
      faults: startedFaults.faults,
      journal,
      timeline,
      payments: explainer,
      hasOwnClock: context.hasOwnClock,
      forkFailures: () => chains.flatMap(({ node }) => node.fork?.failures() ?? []),
      nextAuthorizationNonce,
      snapshot,
      restore,
      reset,
      close,
      [Symbol.asyncDispose]: close,
    };

    app = await createApp({
      facilitator,
      knownNetworks,
      organizations,
      catalog,
      checkHealth,
      now: () => Date.now(),
      serviceId,
      connections: localConnectionCapacity(readOpenFileLimit()),
      docs: true,
      describeBeside:
        studio && (async () => ({ ...studio.describeStudioApi(), example: await apiExampleOf(describe()) })),
      corsOrigins: options.corsOrigins,
      callerWithoutKey: open && (() => organizations.authenticate(localOrganization.apiKey)),
      logger,
    });
    startedFaults.breakAnswers(app.server);
    await app.register(async (local) => {
      refuseForeign(local, options);
      if (open !== undefined) closeRoute(local, open);
      await local.register(async (scope) => {
        const { onAction } = options;
        if (onAction !== undefined) {
          scope.addHook("onResponse", async ({ url, body }, { statusCode }) => {
            if (statusCode === 200) onAction({ path: url, body });
          });
        }
        controlRoutes(scope, {
          describe,
          harness,
          pay: async (spec) => (await import("../control/pay.ts")).pay(describe(), spec),
        });
      });
      if (timeline === undefined || studio === undefined) return;
      const resend: Resend = {
        send: async (operation, body) =>
          (await import("../control/pay.ts")).postPayment(describe(), operation, body),
        capture: async (record, keepSignature) =>
          (await import("../control/capture-of.ts")).captureOf(record, started.chains, {
            ...{ contracts, payTo: options.payTo, keepSignature },
          }),
        describeCurl: (operation, body) => curlOf(describe(), operation, body),
      };
      const { chain } = explainer;
      await local.register(async (scope) =>
        studio.serveStudio(scope, { timeline, resend, chain, ...context }),
      );
    });
    await starting;
    const origin = await listen(app, { host, port }).catch((error: unknown) => {
      // It was free a moment ago.
      throw explainListenError(error, host, port);
    });
    description = describeHarness(origin, chains, options);
    return { description, app, ...harness };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Makes spans of what the service does, where an SDK is registered; anew at a reset, when txNonces begin again. */
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

/** Whether the chains' time is not this machine's. */
function hasOwnClock({ seed, slice }: StartOptions): boolean {
  return seed !== undefined || slice !== undefined;
}

/** The service's core. */
function makeCore(
  parts: Pick<ServiceOptions, "networks" | "signers" | "recoverer" | "database" | "serviceId">,
  options: StartOptions,
): MadeCore {
  const { database } = parts;
  const { settleWaitMs, discovery, logger, state } = options;
  const core = createCore({
    ...parts,
    apiKeyPepper: localPepper,
    settleWaitMs,
    discovery,
    logger,
    clock: {
      behind: hasOwnClock(options) ? Number.POSITIVE_INFINITY : 120,
      ahead: Number.POSITIVE_INFINITY,
    },
  });
  return {
    ...core,
    organizations: withTestKeys(core.organizations, options.networks),
    async start({ rows = state?.saved?.rows, ...start }) {
      if (rows !== undefined) {
        // The requests that held leases were those of an earlier core, which alone had this ledger.
        const adding = addRows(database, rows).then(() => dropLeases(database.$extendTables<LedgerTables>()));
        await adding.catch((cause: unknown) => {
          throw new KitError("The saved ledger does not fit the one of this version", {
            cause,
            hints: ["It is damaged, or another version has saved it: use that one, or begin anew."],
          });
        });
      }
      await core.start(start);
    },
    readRows: () => readRows(database),
  };
}

/** A local chain as the service is configured for it. */
function configure(
  { network, facilitatorContract, asset }: HarnessChain,
  rpcUrl: string,
  payTo: StartOptions["payTo"],
): NetworkConfig {
  return {
    ...network,
    blockTimeMs: 1_000,
    facilitatorContract,
    payTo,
    rpcUrls: [rpcUrl],
    assets: [asset],
    confirmations: 1,
    // The harness has started the node itself.
    forwardEndpoints: 1,
    maxFeePerGas: 1_000_000_000_000n,
    // Its coins cost nothing; an organization may have a budget of its own.
    dailyGasBudget: null,
  };
}
