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

/** The service without its HTTP. */
export type ServiceCore = {
  facilitator: Facilitator;
  organizations: Organizations;
  /** The catalog of paid resources, where it is kept. */
  catalog: Catalog | undefined;
  /** The channels that were opened here. */
  channels: Pick<Ledger["channels"], "list">;
  checkHealth(): Promise<Record<string, NetworkHealth>>;
  /**
   * Checks every network and takes up what an earlier process left in flight. A network that cannot be reached is
   * tried again in the background, and settles nothing until then; so is one that is found to be another than was
   * configured only then.
   *
   * @param options `inspect: false` takes up database and networks unchecked at first: they are as an earlier service
   * of this process found them. `mined` says how many transactions of an account a network has mined, where that is known.
   * @throws ConfigurationError when a network is not what the configuration says, or an operator's key
   * is used elsewhere too.
   */
  start(options?: StartOptions): Promise<void>;
  /** From now on no network is ready, so that balancers send their requests elsewhere. Everything goes on. */
  drain(): void;
  /**
   * Takes no more payments and answers the waiting ones; resolves when nothing is being signed or sent any more. What is
   * in flight is left to the next start.
   */
  stop(): Promise<void>;
  /** After {@link ServiceCore.stop}, when all requests are answered: resolves when it is recorded what became of the answers. */
  settled(): Promise<void>;
  /** Lets go of the chains and the database; nothing works afterwards. */
  close(): Promise<void>;
};

/** The whole service, of which `up` and `serve` are two ways to run it. */
export type Service = {
  app: FastifyInstance;
  organizations: Organizations;
  /** As the core's, both. */
  start(): Promise<void>;
  checkHealth: ServiceCore["checkHealth"];
  listen(address: { host: string; port: number }): Promise<string>;
  /**
   * Ends without turning payments away: readiness says no first, requests are taken for `delayMs` more, then
   * the requests under way are finished, for `finishMs` at most. {@link Service.close} is to follow.
   */
  drain(options: { delayMs: number; finishMs: number }): Promise<void>;
  /** Takes no more payments, answers the waiting ones, and leaves what is in flight to the next start. */
  close(): Promise<void>;
};

/** How long a service that closes tries to record what became of its answers, while the database is away. */
const finishWritesMs = 10_000;

const unrecordedDeliveries =
  "the database is away: it is not recorded that answers were delivered, so the same payments sent again may get them once more";

const fastKeccakAfterMs = 500;

/** Puts the whole service together, from the given parts if there are any; closes them where that fails. */
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
      // Closing refuses new payments, and waits for the requests under way.
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
 * Networks that are configured no more and have settlements: payments of them are found, and judged by their claims. No token is
 * known there, so that a claim says what its payer signed.
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

/** Everything of the service but its HTTP, which it can be put behind with `createApp`. */
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

  /** The outcome of answers is recorded after them: the database must be there until it is. */
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
      // Not while the first payments wait for their start.
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
      // What waited for a silent node is answered from the ledger, and needs its lease until then.
      await calls.settled();
      await endRenewal();
      await settled();
      await db.destroy();
    },
  };
}

/** The operators of each network, what follows their failures up, and the inspection of the networks. */
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
