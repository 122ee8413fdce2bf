import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import type { NetworkConfig } from "../../config/network-config.ts";
import type { LocalOrganization } from "../../config/organization-file.ts";
import type { Rows } from "../../database/copy-rows.ts";
import { KitError } from "../../errors.ts";
import { listen } from "../../http/connections/listen.ts";
import { refuseForeign } from "../../local-server/refuse-foreign.ts";
import { explainListenError, requireFree } from "../../local-server/require-free.ts";
import type { Organizations } from "../../organizations/organizations.ts";
import type { CorsOrigins } from "../../protocol/cors.ts";
import { type Address, keccak256Text } from "../../protocol/hex.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import { localOrganization } from "../../published/local-organization.ts";
import { testPayers } from "../../published/test-payers.ts";
import { closeRoute } from "../control/close-route.ts";
import { curlOf } from "../control/curl.ts";
import type { HarnessDescription } from "../control/description.ts";
import type { HarnessChain, SavedChain } from "../stage/chain.ts";
import { type Chains, type StartChainsOptions, startChains } from "../stage/chains.ts";
import type { ReplaceableCore } from "./replaceable-core.ts";
import type { HarnessPart, RunningHarness } from "./running-harness.ts";
import { withTestKeys } from "./with-test-keys.ts";

export type StartOptions = Omit<StartChainsOptions, "genesisTime"> & {
  host: string;
  /** Names besides `localhost` that all but the service may be called by, such as that of a container. */
  allowHosts?: readonly string[] | undefined;
  /** 0 for any free port. */
  port: number;
  settleWaitMs?: number | undefined;
  /** Where the local organization is paid; at a published account by default. */
  recipient?: Address | undefined;
  /** Organizations besides the local one and those of the published keys. */
  organizations?: readonly LocalOrganization[] | undefined;
  /** What chains and ledger go on with, and what is done with theirs when this ends as it was asked to. */
  state?: { saved: SavedHarness | undefined; save(state: SavedHarness): void | Promise<void> } | undefined;
  logger: Logger;
  /** Whether direct submissions are paid out, as in production with a recoverer's key; they are by default. */
  recovery?: boolean;
  /** Whether a journal is kept of what the service does, which costs it some time; not by default. */
  journal?: boolean;
  /** Whether the studio is served: `/studio`, `/payments` and `/events`; not by default. */
  studio?: boolean;
  /** The origins of web pages that may call the facilitator; none by default. */
  corsOrigins?: CorsOrigins | undefined;
  /** Whether it is kept, and shown, what organizations were paid for; not by default. */
  discovery?: boolean | undefined;
  /** Makes runs repeatable: the chains have a clock of their own, and authorization nonces follow from the seed. */
  seed?: number | undefined;
  /**
   * Lets requests without an API key act for the local organization, and `POST /close` call `onClose` when it is
   * answered; by default keys are needed, and there is no such route.
   */
  open?: { onClose(): void } | undefined;
};

/** A harness that has ended: its chains by name, and the service's database. */
export type SavedHarness = { chains: Readonly<Record<string, SavedChain>>; rows: Rows };

/** The pepper of a database that lives as long as the harness and holds one published key. */
const localPepper = "x402-facilitator-kit local harness";

/** When chains with a clock of their own begin: 2026-01-01T00:00:00Z. */
const genesisTime = 1_767_225_600;

/**
 * Starts the chains, puts everything in place on them, and runs the service against them.
 *
 * @throws {KitError} when something cannot be started; nothing is left running then
 */
export async function startHarness(options: StartOptions): Promise<RunningHarness> {
  const { host, port, logger, seed, open, recovery = true } = options;
  const serviceId = crypto.randomUUID();
  await requireFree(host, port);
  const parts: HarnessPart[] = [];
  let importing: ReturnType<typeof importService> | undefined;
  let chains: Chains | undefined;
  let core: ReplaceableCore | undefined;
  let app: FastifyInstance | undefined;
  let resetting: Promise<void> = Promise.resolve();
  let ended: Promise<void> | undefined;
  let authorizations = 0;
  let description: HarnessDescription | undefined;

  async function end(): Promise<void> {
    try {
      await resetting;
      await core?.stop();
      await saveState().catch((err: unknown) => logger.error({ err }, "the state could not be saved"));
      await app?.close();
      await core?.close();
      for (const part of parts) await part.close?.();
    } finally {
      // Whatever fails before: no node is left.
      await chains?.stop();
    }
  }

  async function saveState(): Promise<void> {
    if (options.state === undefined || core === undefined || description === undefined) return;
    const saved = await Promise.all(
      Object.entries(chains?.chains ?? {}).map(async ([name, chain]) => [name, await chain.save()] as const),
    );
    await options.state.save({ chains: Object.fromEntries(saved), rows: await core.readRows() });
  }

  const close = () => {
    ended ??= end();
    return ended;
  };

  try {
    chains = await startChains({
      ...options,
      saved: options.state?.saved?.chains,
      genesisTime: seed === undefined ? undefined : genesisTime,
      meanwhile() {
        importing = importService(options);
        importing.catch(() => {});
      },
    });
    const running = Object.values(chains.chains);
    for (const { node } of running) {
      node.fork?.onFailure(({ message, hints }) => logger.error({ hints }, message));
    }
    const [
      { createCore },
      { openMigrated },
      { createApp },
      { controlRoutes },
      { createReplaceableCore },
      { addRows, readRows },
      { createLocalSigner },
      { startFaults },
      { openTracing },
      storeModule,
      journalModule,
      studioModule,
    ] = await (importing ?? importService(options));
    const store = storeModule?.createPaymentStore(serviceId);
    const journal = store && journalModule?.createJournalStore(store);
    const startedFaults = await startFaults(running, {
      serviceId,
      onExchange: journal?.onExchange,
    });
    const { faults, serviceRpcUrl } = startedFaults;
    parts.push(startedFaults);
    if (store !== undefined) parts.push({ afterReset: store.clear, close: store.close });
    if (journal !== undefined) parts.push({ afterReset: journal.clear });
    let tracing = await openTracing(serviceId);
    if (tracing !== undefined) {
      parts.push({
        async afterReset() {
          // The txNonces of the chains begin again.
          tracing?.close();
          tracing = await openTracing(serviceId);
        },
        close: () => tracing?.close(),
      });
    }
    const replaceable = await createReplaceableCore(async () => {
      // Nothing is to outlive the harness, not even when it is killed.
      const database = await openMigrated("sqlite::memory:");
      const made = createCore({
        networks: running.map((chain) => configure(chain, serviceRpcUrl(chain))),
        signers: [createLocalSigner(harnessAccounts.operator.privateKey)],
        database,
        apiKeyPepper: localPepper,
        recoverer: recovery ? createLocalSigner(harnessAccounts.recoverer.privateKey) : undefined,
        settleWaitMs: options.settleWaitMs,
        discovery: options.discovery,
        serviceId,
        logger,
        clock: {
          behind: seed === undefined && options.slice === undefined ? 120 : Number.POSITIVE_INFINITY,
          ahead: Number.POSITIVE_INFINITY,
        },
      });
      const organized = createOrganizations(made.organizations, options);
      organized.catch(() => {});
      return {
        ...made,
        organizations: withTestKeys(made.organizations, options.networks),
        async start({ inspect, rows = options.state?.saved?.rows }) {
          if (rows !== undefined) {
            await organized;
            await addRows(database, rows).catch((cause: unknown) => {
              throw new KitError("The saved ledger does not fit the one of this version", {
                cause,
                hints: ["It is damaged, or another version has saved it: use that one, or begin anew."],
              });
            });
          }
          await Promise.all([organized, made.start({ inspect })]);
        },
        readRows: () => readRows(database),
      };
    });
    core = replaceable;

    const putBack = async (chainsBack: readonly (() => Promise<void>)[], rows?: Rows) => {
      for (const part of parts) await part.beforeReset?.();
      await replaceable.replace(async () => {
        // All of them come to an end, whatever becomes of one: the next one must not meet this one.
        const results = await Promise.allSettled(chainsBack.map((back) => back()));
        for (const result of results) if (result.status === "rejected") throw result.reason;
      }, rows);
      for (const part of parts) await part.afterReset?.();
    };
    const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
      const next = resetting.then(work);
      resetting = next.then(
        () => {},
        () => {},
      );
      return next;
    };
    const snapshots = new Map<string, () => Promise<void>>();
    let lastSnapshot = 0;
    const takeSnapshot = async () => {
      const id = ++lastSnapshot;
      const nonces = authorizations;
      const marks = await Promise.all(running.map((chain) => chain.mark()));
      const rows = await replaceable.readRows();
      snapshots.set(`${id}`, async () => {
        for (const later of snapshots.keys()) if (Number(later) > id) snapshots.delete(later);
        await putBack(
          marks.map(({ restore }) => restore),
          rows,
        );
        authorizations = nonces;
      });
      return `${id}`;
    };

    const harness: Omit<RunningHarness, "description" | "app"> = {
      chains: chains.chains,
      organizations: replaceable.organizations,
      pids: chains.pids,
      onFailure: chains.onFailure,
      faults,
      journal,
      forkFailures: () => running.flatMap(({ node }) => node.fork?.failures() ?? []),
      nextAuthorizationNonce() {
        if (seed === undefined) return undefined;
        return keccak256Text(`x402-facilitator-kit authorization: ${seed}, ${authorizations++}`);
      },
      snapshot: () => inTurn(takeSnapshot),
      restore: (id) =>
        inTurn(async () => {
          const restore = snapshots.get(id);
          if (restore !== undefined) return restore();
          throw new KitError("The snapshot is gone", {
            hints: ["It was taken before a reset, or after another one that was gone back to."],
          });
        }),
      reset: () =>
        inTurn(async () => {
          snapshots.clear();
          await putBack(running.map((chain) => chain.reset));
          authorizations = 0;
        }),
      close,
      [Symbol.asyncDispose]: close,
    };

    app = await createApp({
      facilitator: replaceable.facilitator,
      knownNetworks: options.knownNetworks,
      organizations: replaceable.organizations,
      catalog: replaceable.catalog,
      checkHealth: replaceable.checkHealth,
      now: () => Date.now(),
      serviceId,
      docs: true,
      describeBeside: studioModule?.describeStudioApi,
      corsOrigins: options.corsOrigins,
      callerWithoutKey: open && (() => replaceable.organizations.authenticate(localOrganization.apiKey)),
      logger,
    });
    startedFaults.breakAnswers(app.server);
    const describe = (): HarnessDescription => {
      if (description === undefined) throw new Error("the harness is not ready yet");
      return description;
    };
    if (open !== undefined) {
      await app.register(async (scope) => {
        refuseForeign(scope, options);
        closeRoute(scope, open);
      });
    }
    await app.register(async (scope) => {
      refuseForeign(scope, options);
      controlRoutes(scope, {
        describe,
        harness,
        pay: async (spec) => (await import("../control/pay.ts")).pay(describe(), spec),
      });
    });
    if (store !== undefined && studioModule !== undefined) {
      const { serveStudio } = studioModule;
      await app.register(async (scope) => {
        refuseForeign(scope, options);
        serveStudio(scope, {
          store,
          resend: {
            send: async (operation, body) =>
              (await import("../control/pay.ts")).postPayment(describe(), operation, body),
            capture: async (payment) =>
              (await import("../control/capture-of.ts")).captureOf(
                payment,
                harness.chains,
                options.facilitatorContracts,
              ),
            describeCurl: (operation, body) => curlOf(describe(), operation, body),
          },
          contracts: options.facilitatorContracts,
          networks: options.knownNetworks,
        });
      });
    }
    const origin = await listenOn(app, { host, port });
    description = describeHarness(origin, running, options);
    return { description, app, ...harness };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What the service on the chains is made of. Reading it takes as long as the nodes take to come up. */
function importService({ journal = false, studio = false }: StartOptions) {
  return Promise.all([
    import("../../service.ts"),
    import("../../database/open-migrated.ts"),
    import("../../http/app.ts"),
    import("../control/control.ts"),
    import("./replaceable-core.ts"),
    import("../../database/copy-rows.ts"),
    import("../../chain/signing/local-signer.ts"),
    import("../faults/create-faults.ts"),
    import("../../tracing/open-tracing.ts"),
    journal || studio ? import("../../studio/payment-store.ts") : undefined,
    journal ? import("../journal/journal.ts") : undefined,
    studio ? import("../../studio/serve-studio.ts") : undefined,
  ]);
}

/** @throws {KitError} when the address is taken, even if it was free a moment ago */
async function listenOn(app: FastifyInstance, address: { host: string; port: number }): Promise<string> {
  try {
    return await listen(app, address);
  } catch (error) {
    throw explainListenError(error, address.host, address.port);
  }
}

/** A local chain as the service is configured for it. */
function configure({ network, facilitatorContract, asset }: HarnessChain, rpcUrl: string): NetworkConfig {
  return {
    ...network,
    blockTimeMs: 1_000,
    facilitatorContract,
    rpcUrls: [rpcUrl],
    assets: [asset],
    confirmations: 1,
    maxFeePerGas: 1_000_000_000_000n,
  };
}

/** The local organization, and those that were asked for, which have their keys at once. */
async function createOrganizations(
  organizations: Organizations,
  { networks, recipient = localOrganization.recipient, organizations: asked = [] }: StartOptions,
): Promise<void> {
  const { id, name } = localOrganization;
  await organizations.create({ id, name });
  for (const network of networks) await organizations.setRecipient(id, network, recipient);
  for (const { id, name, apiKey, scopes, networks } of asked) {
    await organizations.create({ id, name });
    for (const [network, { recipient, ...limits }] of networks) {
      await organizations.setRecipient(id, network, recipient);
      await organizations.setLimits(id, network, limits);
    }
    await organizations.createKey(id, { scopes, key: apiKey });
  }
}

function describeHarness(
  origin: string,
  chains: readonly HarnessChain[],
  { seed, recipient = localOrganization.recipient, organizations = [] }: StartOptions,
): HarnessDescription {
  const { id, apiKey } = localOrganization;
  return {
    ...(seed !== undefined && { seed }),
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
    networks: Object.fromEntries(chains.map((chain) => [chain.network.name, describeChain(chain)])),
  };
}

function describeChain({ network, rpcUrl, facilitatorContract, asset, hasBlacklist, node }: HarnessChain) {
  const { name, chainId, caip2, tier, nativeCoin } = network;
  const added = builtInNetworks.named(name) === undefined ? { tier, nativeCoin } : {};
  const described = { chainId, caip2, rpcUrl, facilitatorContract, asset, ...added };
  if (node.fork === undefined) return described;
  const { kind, blockNumber } = node.fork;
  return { ...described, fork: { block: Number(blockNumber), from: kind, hasBlacklist } };
}
