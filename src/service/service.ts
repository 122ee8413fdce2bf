import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import type { Chain } from "../chain/chain.ts";
import type { Signer } from "../chain/signing/local-signer.ts";
import { loadFastKeccak } from "../chain/signing/recover-signer.ts";
import { settleWaitDefaultsMs } from "../config/serve-config.ts";
import { clockOf } from "../ledger/database/database.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { waysToPay } from "../methods/on-chain/ways-to-pay.ts";
import { noMetrics } from "../observe/metrics/metrics.ts";
import type { NetworkHealth } from "../protocol/answers.ts";
import { addToBuiltIn, type Network, type NetworkName } from "../protocol/networks.ts";
import { createPending } from "../util/concurrency.ts";
import { ConfigurationError } from "../util/errors.ts";
import { type Catalog, createCatalog } from "./discovery/catalog.ts";
import type { Lane, Lanes } from "./facilitator/context.ts";
import { createFacilitator, type Facilitator } from "./facilitator/facilitator.ts";
import { createSponsor } from "./facilitator/sponsor.ts";
import { checkSigner } from "./health/check-operators.ts";
import { type Inspection, inspectNetwork, usualClockTolerance } from "./health/inspect-network.ts";
import { createApp } from "./http/app.ts";
import { listen } from "./http/connections/listen.ts";
import { createOrganizations } from "./organizations/create-organizations.ts";
import { wrongPepper } from "./organizations/key-issuing.ts";
import { type Organizations, reserve } from "./organizations/organizations.ts";
import { createRecoverer } from "./relayer/recoverer.ts";
import { createRecovery, type RecoveryLoop } from "./relayer/recovery.ts";
import { createRelayer } from "./relayer/relayer.ts";
import { createOutcomes, type Outcomes } from "./relayer/slot.ts";
import {
  createHealthCheck,
  createNetworkStarts,
  createSupervision,
  type StartOptions,
} from "./service-health.ts";
import {
  createMetricSources,
  openParts,
  renewLeasesRegularly,
  type ServiceOptions,
  type ServiceParts,
  usualLeaseMs,
} from "./service-parts.ts";
import { createWithdrawalWatch } from "./withdrawal-watch.ts";

/** The service without HTTP. */
export type ServiceCore = {
  facilitator: Facilitator;
  organizations: Organizations;
  /** The catalog of paid resources, if it is kept. */
  catalog: Catalog | undefined;
  /** The channels opened through this service. */
  channels: Pick<Ledger["channels"], "list">;
  checkHealth(): Promise<Record<string, NetworkHealth>>;
  /**
   * Checks every network and adopts what an earlier process left in flight. A network that cannot be reached is retried in
   * the background, and settles nothing until then; so does a network that turns out only then not to be as configured.
   *
   * @param options `inspect: false` skips the checks of database and networks at first: they are as an earlier service of
   * this process found them. `mined` returns how many transactions of an account a network has mined, if known.
   * @throws ConfigurationError when a network is not as configured, or an operator's key is also used elsewhere.
   */
  start(options?: StartOptions): Promise<void>;
  /** Makes every network not ready, so that balancers send their requests elsewhere. Everything else continues. */
  drain(): void;
  /**
   * Accepts no more payments and answers the waiting ones; resolves when nothing is being signed or sent anymore.
   * Transactions in flight are left to the next start.
   */
  stop(): Promise<void>;
  /**
   * Call this after {@link ServiceCore.stop}, when all requests are answered: resolves when the delivery of the answers
   * is recorded.
   */
  settled(): Promise<void>;
  /** Closes the chains and the database; nothing works afterwards. */
  close(): Promise<void>;
};

/** The whole service; `up` and `serve` are two ways to run it. */
export type Service = {
  app: FastifyInstance;
  organizations: Organizations;
  /** `start` and `checkHealth` are those of {@link ServiceCore}. */
  start(): Promise<void>;
  checkHealth: ServiceCore["checkHealth"];
  listen(address: { host: string; port: number }): Promise<string>;
  /**
   * Shuts down without turning payments away: readiness fails first, requests are accepted for another `delayMs`, then
   * requests in progress are finished within `finishMs`. Call {@link Service.close} afterwards.
   */
  drain(options: { delayMs: number; finishMs: number }): Promise<void>;
  /** Accepts no more payments, answers the waiting ones, and leaves transactions in flight to the next start. */
  close(): Promise<void>;
};

/** How long a closing service tries to record the delivery of its answers while the database is down, in milliseconds. */
const finishWritesMs = 10_000;

const unrecordedDeliveries =
  "the database is away: it is not recorded that answers were delivered, so the same payments sent again may get them once more";

const fastKeccakAfterMs = 500;

/** Builds the whole service, from the given parts if there are any; closes them if that fails. */
export async function createService(
  options: ServiceOptions,
  parts: ServiceParts = openParts(options),
): Promise<Service> {
  const core = createCore(options, parts);
  const { facilitator, organizations, catalog, checkHealth } = core;
  const creation = parts.ledger.outcomes.networks().then((claimed) =>
    createApp({
      facilitator,
      knownNetworks: addToBuiltIn([...options.networks, ...withoutConfiguration(claimed, options.networks)]),
      parse: options.ways?.parse,
      organizations,
      catalog,
      checkHealth,
      serviceId: parts.serviceId,
      now: () => Date.now(),
      anonymousVerify: options.anonymousVerify ?? false,
      logger: options.logger,
      ...options.http,
    }),
  );
  const app = await creation.catch(async (error: unknown) => {
    await core.stop();
    await core.close();
    throw error;
  });
  return {
    app,
    organizations,
    start: core.start,
    checkHealth,
    listen: (address) => listen(app, address),
    async drain({ delayMs, finishMs }) {
      core.drain();
      await sleep(delayMs);
      const giveUp = new AbortController();
      // Closing refuses new payments, and waits for requests in progress.
      await Promise.race([
        app.close(),
        sleep(finishMs, undefined, { signal: giveUp.signal }).catch(() => {}),
      ]);
      giveUp.abort();
    },
    async close() {
      await core.stop();
      await app.close();
      await core.close();
    },
  };
}

/**
 * Networks that are no longer configured but have settlements: their payments are found and judged by their claims. No
 * token is known there, so the claim tells what its payer signed.
 */
function withoutConfiguration(
  claimed: readonly { network: NetworkName; chainId: number }[],
  configured: readonly Network[],
): Network[] {
  const left = claimed.filter(({ chainId }) => configured.every((network) => network.chainId !== chainId));
  return left.map(({ network: name, chainId }) => ({
    name,
    chainId,
    caip2: `eip155:${chainId}`,
    tier: "mainnet",
    usdc: { address: `0x${"00".repeat(20)}`, name: "", version: "", decimals: 0 },
    blockTimeMs: 0,
    nativeCoin: "",
  }));
}

/** Makes everything of the service except HTTP, which `createApp` adds. */
export function createCore(options: ServiceOptions, parts: ServiceParts = openParts(options)): ServiceCore {
  const { serviceId, ledger } = parts;
  const { logger, apiKeyPepper, settleWaitMs, leaseMs = usualLeaseMs, inspectEveryMs } = options;
  const { database: db, ways = waysToPay, clock = usualClockTolerance } = options;
  const { now } = clockOf(db);
  const organizations = createOrganizations({
    db,
    pepper: apiKeyPepper,
    now,
    reserved: reserve(options.networks),
  });
  const catalog = options.discovery ? createCatalog({ database: db, ways, now, log: logger }) : undefined;
  const outcomes = createOutcomes();
  const closing = new AbortController();
  const { metrics = noMetrics } = options.http ?? {};

  const { networks, recoveries, supervision, watches } = createNetworks(options, parts, outcomes);
  const lanes = [...networks.values()].flat();
  const starts = createNetworkStarts({
    networks,
    recoveries,
    supervision,
    log: logger,
    recoverer: options.recoverer?.address,
    closing: closing.signal,
  });
  let draining = false;

  /** The delivery of answers is recorded after they are sent, so the database must stay open until then. */
  const recordings = createPending();
  const calls = createPending();
  const facilitator = createFacilitator({
    networks,
    recoveries,
    ledger: {
      ...ledger,
      leases: {
        ...ledger.leases,
        markDelivered: recordings.track(ledger.leases.markDelivered),
        releaseLease: recordings.track(ledger.leases.releaseLease),
        abandonIdempotent: recordings.track(ledger.leases.abandonIdempotent),
      },
    },
    ways,
    outcomes,
    now,
    settleWaitMs: settleWaitMs === undefined ? settleWaitDefaultsMs : { 1: settleWaitMs, 2: settleWaitMs },
    serviceId,
    closing: closing.signal,
  });
  const checkHealth = createHealthCheck({
    networks,
    database: db,
    organizations,
    clock,
    now: () => Date.now(),
    log: logger,
    supervision,
    whyNotServed: (name) => (draining ? "shutting down" : starts.whyNotServed(name)),
  });
  metrics.observe(createMetricSources({ networks, ledger, health: checkHealth, ways }));

  const endRenewal = renewLeasesRegularly(ledger.leases, { leaseMs, log: logger });
  let hashing: NodeJS.Timeout | undefined;
  let inspecting = Promise.resolve();
  const inspectAgain = async () => {
    await Promise.all(starts.started().map((name) => supervision.inspect(name)));
  };
  const repetition =
    inspectEveryMs === undefined
      ? undefined
      : setInterval(() => {
          inspecting = inspecting.then(inspectAgain);
        }, inspectEveryMs).unref();

  async function settled(): Promise<void> {
    await Promise.all([recordings.settled(), catalog?.settled()]);
    const unrecorded = await ledger.leases.finishWrites(finishWritesMs);
    if (unrecorded > 0) logger.error({ writes: unrecorded }, unrecordedDeliveries);
  }

  return {
    facilitator: {
      ...facilitator,
      verify: calls.track(facilitator.verify),
      settle: calls.track(facilitator.settle),
    },
    organizations,
    catalog,
    channels: ledger.channels,
    checkHealth,
    settled,
    async start(startOptions = { inspect: true }) {
      if (startOptions.inspect && (await organizations.checkPepper()) === "wrong") {
        const { name, problem, advice } = wrongPepper;
        throw new ConfigurationError([{ name, problem: `${problem}. ${advice}` }]);
      }
      const problems = await starts.startAll(startOptions);
      if (problems.length > 0) throw new ConfigurationError(problems);
      for (const watch of watches) watch.start();
      // Not while the first payments wait for the start.
      hashing = setTimeout(() => void loadFastKeccak(), fastKeccakAfterMs).unref();
    },
    drain() {
      draining = true;
    },
    async stop() {
      starts.stop();
      clearTimeout(hashing);
      clearInterval(repetition);
      closing.abort();
      for (const watch of watches) watch.stop();
      await Promise.all([
        ...lanes.map(({ relayer }) => relayer.stop()),
        ...Array.from(recoveries.values()).map((recovery) => recovery.stop()),
        inspecting,
      ]);
    },
    async close() {
      for (const { chain } of lanes) chain.close();
      for (const rpc of [...parts.endpoints.values()].flat()) rpc.close();
      // Requests that waited for a silent node are answered from the ledger, and need their lease until then.
      await calls.settled();
      await endRenewal();
      await settled();
      await db.destroy();
    },
  };
}

/** Makes the operators and recoveries of each network, and the inspection of the networks. */
function createNetworks(
  options: ServiceOptions,
  { ledger, chains, endpoints, serviceId }: ServiceParts,
  outcomes: Outcomes,
) {
  const { logger, signers, recoverer, sponsor, ways = waysToPay, clock = usualClockTolerance } = options;
  const { metrics = noMetrics } = options.http ?? {};
  const { now } = clockOf(options.database);
  const sponsors = new Map(
    [...chains].flatMap(([name, [chain]]) => {
      const { gifts: limits } = chain.network;
      if (sponsor === undefined || limits === undefined) return [];
      const parts = { chain, signer: sponsor, gifts: ledger.gifts, limits, metrics, now, log: logger };
      return [[name, createSponsor(parts)]];
    }),
  );
  const networks = new Map<NetworkName, Lanes>(
    [...chains].map(([name, [first, ...others]]) => {
      const createLane = (chain: Chain, signer: Signer): Lane => ({
        chain,
        relayer: createRelayer({ chain, signer, ledger, ways, outcomes, now, log: logger }),
        sponsor: sponsors.get(name),
        canSend: () => supervision.canSend(name, signer.address),
        isLow: () => supervision.isLow(name, signer.address),
      });
      const [signer, ...otherSigners] = signers;
      const otherLanes = otherSigners.flatMap((other, index) => {
        const chain = others[index];
        return chain === undefined ? [] : [createLane(chain, other)];
      });
      return [name, [createLane(first, signer), ...otherLanes]];
    }),
  );
  const recoveries = new Map<NetworkName, RecoveryLoop>(
    [...networks].map(([name, [{ chain }]]) => {
      const collaborators = { chain, ledger, ways, outcomes, now, log: logger };
      const sender = recoverer && createRecoverer({ ...collaborators, signer: recoverer });
      return [name, createRecovery({ ...collaborators, ledger: ledger.recoveries, recoverer: sender })];
    }),
  );

  async function inspect(name: NetworkName): Promise<Inspection> {
    const lanes = networks.get(name);
    if (lanes === undefined) throw new RangeError(`${name} is not configured`);
    const { network } = lanes[0].chain;
    const [inspection, ofSigners] = await Promise.all([
      inspectNetwork({
        network,
        ways,
        endpoints: endpoints.get(name) ?? [],
        operators: lanes.map(({ relayer }) => relayer.operator),
        recoverer: recoverer?.address,
        sponsor: sponsor?.address,
        nextTxNonce: ledger.claims.nextTxNonce,
        refusesUsedOperators: options.refusesUsedOperators,
        now: () => Date.now(),
        clock,
      }),
      options.inspectSigners === true
        ? Promise.all(signers.map((signer) => checkSigner(signer, network)))
        : [],
    ]);
    return { ...inspection, checks: [...inspection.checks, ...ofSigners] };
  }

  const supervision = createSupervision({ inspect, log: logger });
  const watches = [...networks].flatMap(([, [{ chain }]]) => {
    const offered = ways.methods.filter((method) => method.extra(chain.network) !== undefined);
    const announcing = new Set(
      offered.flatMap(({ name }) => ways.settlingOf(name).channels?.withdrawals ?? []),
    );
    return [...announcing].map((logs) =>
      createWithdrawalWatch({ chain, logs, ledger, metrics, log: logger, serviceId }),
    );
  });
  return { networks, recoveries, supervision, watches };
}
