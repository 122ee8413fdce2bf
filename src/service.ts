import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import type { Chain } from "./chain/chain.ts";
import { createChain } from "./chain/create-chain.ts";
import type { Signer } from "./chain/signer.ts";
import type { NetworkConfig } from "./config/network-config.ts";
import { migrate } from "./database/migrate.ts";
import { openDatabase } from "./database/open-database.ts";
import { ConfigurationError, type Problem } from "./errors/configuration.ts";
import type { Lane, Lanes } from "./facilitator/context.ts";
import { createFacilitator, type Facilitator } from "./facilitator/facilitator.ts";
import { type AppOptions, createApp } from "./http/app.ts";
import type { NetworkHealth } from "./http/health.ts";
import { createLedger } from "./ledger/create-ledger.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { noMetrics } from "./metrics/metrics.ts";
import { createOrganizations } from "./organizations/create-organizations.ts";
import type { Organizations } from "./organizations/organizations.ts";
import { domainSeparator } from "./protocol/authorization.ts";
import type { NetworkName } from "./protocol/networks.ts";
import { createOutcomes } from "./relayer/outcomes.ts";
import { createRecovery, type Recovery } from "./relayer/recovery.ts";
import { createRecoverer } from "./relayer/recovery-lane.ts";
import { createRelayer } from "./relayer/relayer.ts";

export type ServiceOptions = {
  networks: readonly NetworkConfig[];
  /** The operators that send settle transactions, each on every network; they take turns. */
  signers: readonly [Signer, ...Signer[]];
  /** Pays out what direct submissions brought to the contract. Without it they wait for `x402-kit recover`. */
  recoverer?: Signer | undefined;
  /** `sqlite:PATH`. */
  databaseUrl: string;
  /** The secret that API keys are hashed with. */
  apiKeyPepper: string;
  /** How long a settle waits for its outcome; 80 s for v1 and 45 s for v2 unless one time is given for both. */
  settleWaitMs?: number | undefined;
  anonymousVerify?: boolean;
  /** Protections of the HTTP side, and who is told of what happens; see `AppOptions`. */
  http?: Pick<
    AppOptions,
    "metrics" | "rateLimits" | "pressure" | "maxConnections" | "trustProxy" | "timeouts"
  >;
  /** How long what a dead instance held stays out of reach, in milliseconds; 30 s by default. */
  leaseMs?: number;
  /** A head that many seconds behind the clock is not the chain's head: the network is not ready. 120 by default. */
  staleHeadSeconds?: number;
  logger: Logger;
  /** For tests of crashes and faults: puts something between the service and what it works with. */
  wrap?: { ledger?(ledger: Ledger): Ledger; chain?(chain: Chain): Chain };
};

/** What the service knows and does, without its HTTP. */
export type ServiceCore = {
  facilitator: Facilitator;
  organizations: Organizations;
  checkHealth(): Promise<Record<string, NetworkHealth>>;
  /**
   * Checks every network and takes up what an earlier process left in flight. A network that cannot be reached is
   * tried again in the background, and settles nothing until then.
   *
   * @throws ConfigurationError when a network is not what the configuration says.
   */
  start(): Promise<void>;
  /**
   * Takes no more payments and answers whoever waits; resolves when nothing is being signed or sent any more. What is
   * in flight is left to the next start.
   */
  stop(): Promise<void>;
  /** Lets go of the chains and the database; nothing works afterwards. */
  close(): Promise<void>;
};

/** The whole service, of which `up` and `serve` are two ways to run it. */
export type Service = {
  app: FastifyInstance;
  organizations: Organizations;
  /** As the core's. */
  start(): Promise<void>;
  listen(address: { host: string; port: number }): Promise<string>;
  /** Takes no more payments, answers whoever waits, and leaves what is in flight to the next start. */
  close(): Promise<void>;
};

const reconnectMs = 5_000;

/** Puts the whole service together. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const core = await createCore(options);
  const { facilitator, organizations, checkHealth } = core;
  const app = await createApp({
    facilitator,
    organizations,
    checkHealth,
    now: () => Date.now(),
    anonymousVerify: options.anonymousVerify ?? false,
    logger: options.logger,
    ...options.http,
  });
  return {
    app,
    organizations,
    start: core.start,
    listen: (address) => app.listen(address),
    async close() {
      await core.stop();
      await app.close();
      await core.close();
    },
  };
}

/** Everything of the service but its HTTP, which it can be put behind with `createApp`. */
export async function createCore(options: ServiceOptions): Promise<ServiceCore> {
  const { logger, apiKeyPepper, settleWaitMs, leaseMs = 30_000, staleHeadSeconds = 120, wrap = {} } = options;
  const { ledger: wrapLedger = (ledger) => ledger, chain: wrapChain = (chain) => chain } = wrap;
  const now = () => Date.now();
  const db = await openDatabase({ url: options.databaseUrl });
  await migrate(db);
  const ledger = wrapLedger(createLedger({ db, instanceId: crypto.randomUUID(), now, leaseMs }));
  const organizations = createOrganizations({ db, pepper: apiKeyPepper, now });
  const outcomes = createOutcomes();
  const closing = new AbortController();

  const { metrics = noMetrics } = options.http ?? {};
  const networks = new Map<NetworkName, Lanes>(
    options.networks.map((network) => {
      const createLane = (signer: Signer): Lane => {
        const chain = wrapChain(
          createChain({ network, operator: signer.address, observer: metrics.rpc(network.name) }),
        );
        const relayer = createRelayer({ chain, signer, ledger, outcomes, now, log: logger });
        return { chain, relayer };
      };
      const [first, ...others] = options.signers;
      return [network.name, [createLane(first), ...others.map(createLane)]];
    }),
  );
  const lanes = [...networks.values()].flat();
  const recoveries = new Map<NetworkName, Recovery>(
    [...networks].map(([name, [{ chain }]]) => {
      const collaborators = { chain, ledger, outcomes, now, log: logger };
      const recoverer = options.recoverer && createRecoverer({ ...collaborators, signer: options.recoverer });
      return [name, createRecovery({ ...collaborators, recoverer })];
    }),
  );
  const started = new Set<NetworkName>();

  const facilitator = createFacilitator({
    networks,
    recoveries,
    ledger,
    outcomes,
    now,
    settleWaitMs: { 1: settleWaitMs ?? 80_000, 2: settleWaitMs ?? 45_000 },
    closing: closing.signal,
  });
  metrics.observe({
    lanes: () =>
      lanes.map(({ chain, relayer }) => ({
        network: chain.network.name,
        operator: relayer.operator,
        ...relayer.load(),
      })),
  });

  const renewal = setInterval(() => {
    ledger
      .renewLeases()
      .catch((error: unknown) => logger.error({ err: error }, "leases could not be renewed"));
  }, leaseMs / 3);
  renewal.unref();
  let reconnection: NodeJS.Timeout | undefined;

  async function start(): Promise<void> {
    const problems: Problem[] = [];
    await Promise.all(
      [...networks].map(async ([name, ofNetwork]) => {
        if (started.has(name)) return;
        try {
          problems.push(...(await compareWithChain(ofNetwork[0].chain)));
          await recoveries.get(name)?.start();
          await Promise.all(ofNetwork.map(({ relayer }) => relayer.start()));
          started.add(name);
        } catch (error) {
          if (closing.signal.aborted) return;
          logger.warn({ network: name, err: error }, "the network cannot be reached; trying again");
        }
      }),
    );
    if (problems.length > 0) throw new ConfigurationError(problems);
    if (started.size < networks.size && !closing.signal.aborted) {
      reconnection = setTimeout(() => {
        start().catch((error: unknown) =>
          logger.error({ err: error }, "a network is not what was configured"),
        );
      }, reconnectMs).unref();
    }
  }

  async function checkHealth(): Promise<Record<string, NetworkHealth>> {
    const checks = [...networks].map(async ([name, [{ chain }]]): Promise<[string, NetworkHealth]> => {
      if (!started.has(name)) return [name, { ready: false, detail: "not reached yet" }];
      try {
        const age = Math.floor(now() / 1000) - Number((await chain.head()).timestamp);
        return age > staleHeadSeconds
          ? [name, { ready: false, detail: `the newest block is ${age} s old` }]
          : [name, { ready: true, detail: "ok" }];
      } catch {
        return [name, { ready: false, detail: "the RPC does not answer" }];
      }
    });
    return Object.fromEntries(await Promise.all(checks));
  }

  return {
    facilitator,
    organizations,
    checkHealth,
    start,
    async stop() {
      clearInterval(renewal);
      clearTimeout(reconnection);
      closing.abort();
      await Promise.all([
        ...lanes.map(({ relayer }) => relayer.stop()),
        ...[...recoveries.values()].map((recovery) => recovery.stop()),
      ]);
    },
    async close() {
      for (const { chain } of lanes) chain.close();
      await db.destroy();
    },
  };
}

/** Whether a network is what the configuration says it is: chain id, contract, and the domain of every asset. */
async function compareWithChain(chain: Chain): Promise<Problem[]> {
  const { network } = chain;
  const { chainId, contractCode, domainSeparators } = await chain.inspect();
  const problems: Problem[] = [];
  const add = (problem: string) => problems.push({ name: network.name, problem });
  if (chainId !== network.chainId) {
    add(`the RPC serves chain ${chainId}, but ${network.name} is chain ${network.chainId}`);
    return problems;
  }
  if (contractCode === "0x") add(`there is no facilitator contract at ${network.facilitatorContract}`);
  for (const asset of network.assets) {
    const computed = domainSeparator(asset, network.chainId);
    const onChain = domainSeparators.get(asset.address);
    if (onChain?.toLowerCase() !== computed) {
      add(
        onChain === undefined
          ? `there is no EIP-3009 token at ${asset.address}`
          : `the token ${asset.address} signs for another domain than name "${asset.name}", version "${asset.version}"`,
      );
    }
  }
  return problems;
}
