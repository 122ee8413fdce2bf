import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import type { Chain } from "../chain/chain.ts";
import type { Signer } from "../chain/signing/signer.ts";
import { settleWaitDefaultsMs } from "../config/serve-config.ts";
import { waysToPay } from "../methods/on-chain/ways-to-pay.ts";
import { noMetrics } from "../observe/metrics/metrics.ts";
import type { NetworkHealth } from "../protocol/answers.ts";
import { loadFastKeccak } from "../protocol/fast-keccak.ts";
import type { Address } from "../protocol/hex.ts";
import { addToBuiltIn, type NetworkName } from "../protocol/networks.ts";
import { createPending } from "../util/concurrency.ts";
import { ConfigurationError, type ConfigurationProblem } from "../util/errors.ts";
import { type Catalog, createCatalog } from "./discovery/catalog.ts";
import type { Lane, Lanes } from "./facilitator/context.ts";
import { createFacilitator, type Facilitator } from "./facilitator/facilitator.ts";
import type { Check } from "./health/check.ts";
import { usualClockTolerance } from "./health/check-endpoint.ts";
import { checkSigner } from "./health/check-operators.ts";
import { type Inspection, inspectNetwork } from "./health/inspect-network.ts";
import { createHealthCheck, createSupervision } from "./health/service-health.ts";
import { createApp } from "./http/app.ts";
import { listen } from "./http/connections/listen.ts";
import { createOrganizations } from "./organizations/create-organizations.ts";
import type { Organizations } from "./organizations/organizations.ts";
import { wrongPepper } from "./organizations/pepper.ts";
import { reserve } from "./organizations/recipient.ts";
import { createRecoverer } from "./relayer/recoverer.ts";
import { createRecovery, type RecoveryLoop } from "./relayer/recovery.ts";
import { createRelayer } from "./relayer/relayer.ts";
import { createOutcomes } from "./relayer/slot.ts";
import {
  createMetricSources,
  openParts,
  type ServiceOptions,
  type ServiceParts,
  usualLeaseMs,
} from "./service-parts.ts";

type StartOptions = {
  inspect: boolean;
  mined?: ((network: NetworkName, account: Address) => number | undefined) | undefined;
};

/** What the service knows and does, without its HTTP. */
export type ServiceCore = {
  facilitator: Facilitator;
  organizations: Organizations;
  /** What organizations were paid for, where that is kept. */
  catalog: Catalog | undefined;
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

const reconnectMs = 5_000;
const renewAgainMs = 200;
const fastKeccakAfterMs = 500;

/** Puts the whole service together. */
export function createService(options: ServiceOptions): Promise<Service> {
  return composeService(options, openParts(options));
}

/** Puts the whole service together from the given parts; closes them where that fails. */
export async function composeService(options: ServiceOptions, parts: ServiceParts): Promise<Service> {
  const core = composeCore(options, parts);
  const { facilitator, organizations, catalog, checkHealth } = core;
  const creation = createApp({
    facilitator,
    knownNetworks: addToBuiltIn(options.networks),
    parse: options.ways?.parse,
    organizations,
    catalog,
    checkHealth,
    serviceId: parts.serviceId,
    now: () => Date.now(),
    anonymousVerify: options.anonymousVerify ?? false,
    logger: options.logger,
    ...options.http,
  });
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

/** Everything of the service but its HTTP, which it can be put behind with `createApp`. */
export function createCore(options: ServiceOptions): ServiceCore {
  return composeCore(options, openParts(options));
}

function composeCore(options: ServiceOptions, parts: ServiceParts): ServiceCore {
  const { serviceId, ledger, chains, endpoints } = parts;
  const { logger, apiKeyPepper, settleWaitMs, leaseMs = usualLeaseMs } = options;
  const { database: db, signers, ways = waysToPay, clock = usualClockTolerance } = options;
  const now = () => Date.now();
  const organizations = createOrganizations({
    db,
    pepper: apiKeyPepper,
    now,
    reserved: reserve(options.networks),
  });
  const catalog = options.discovery ? createCatalog({ database: db, now, log: logger }) : undefined;
  const outcomes = createOutcomes();
  const closing = new AbortController();

  const { metrics = noMetrics } = options.http ?? {};
  const networks = new Map<NetworkName, Lanes>(
    [...chains].map(([name, [first, ...others]]) => {
      const createLane = (chain: Chain, signer: Signer): Lane => ({
        chain,
        relayer: createRelayer({ chain, signer, ledger, ways, outcomes, now, log: logger }),
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
  const lanes = [...networks.values()].flat();
  const supervision = createSupervision({ inspect, log: logger });
  const recoveries = new Map<NetworkName, RecoveryLoop>(
    [...networks].map(([name, [{ chain }]]) => {
      const collaborators = { chain, ledger, ways, outcomes, now, log: logger };
      const recoverer = options.recoverer && createRecoverer({ ...collaborators, signer: options.recoverer });
      return [name, createRecovery({ ...collaborators, recoverer })];
    }),
  );
  let draining = false;
  const started = new Set<NetworkName>();
  /** Networks that answer, and are not served as they are. */
  const refused = new Set<NetworkName>();

  /** What becomes of answers is recorded after them: the database must be there until it is. */
  const recordings = createPending();
  const facilitator = createFacilitator({
    networks,
    recoveries,
    ledger: {
      ...ledger,
      markDelivered: recordings.track(ledger.markDelivered),
      releaseLease: recordings.track(ledger.releaseLease),
      abandonIdempotent: recordings.track(ledger.abandonIdempotent),
    },
    ways,
    outcomes,
    now,
    settleWaitMs: settleWaitMs === undefined ? settleWaitDefaultsMs : { 1: settleWaitMs, 2: settleWaitMs },
    serviceId,
    closing: closing.signal,
  });
  const checkHealth = createHealthCheck({
    ...{ networks, database: db, organizations, clock, now, log: logger },
    whyNotServed(name) {
      if (draining) return "shutting down";
      if (started.has(name)) return undefined;
      // The details are for the operator, and are in the log.
      return refused.has(name) ? "not what was configured; the log says more" : "not reached yet";
    },
  });
  metrics.observe(createMetricSources({ networks, ledger, health: checkHealth, usual: ways.usual }));

  let renewing: Promise<void> | undefined;
  let closed = false;
  /** Tried again at once where it fails, which may have taken half a lease: other instances take what is not renewed. */
  async function renewLeases(): Promise<void> {
    for (;;) {
      try {
        return await ledger.renewLeases();
      } catch (error) {
        logger.error({ err: error }, "leases could not be renewed");
      }
      if (closed) return;
      await sleep(renewAgainMs);
    }
  }
  const renewal = setInterval(() => {
    // One that takes long, since the database does, is not made to take longer by the next.
    renewing ??= renewLeases().finally(() => {
      renewing = undefined;
    });
    // Beside it: where this takes longer than a lease, another instance would give the successes that are to be recorded.
    void ledger.retryWrites();
  }, leaseMs / 6);
  renewal.unref();
  let reconnection: NodeJS.Timeout | undefined;
  let hashing: NodeJS.Timeout | undefined;
  let inspecting = Promise.resolve();
  const { inspectEveryMs } = options;
  const repetition =
    inspectEveryMs === undefined
      ? undefined
      : setInterval(() => {
          inspecting = inspecting.then(inspectAgain);
        }, inspectEveryMs).unref();

  /** Starts what is not started yet, and is tried again later where that fails. Gives what waiting does not mend. */
  async function startOthers({ inspect, mined }: StartOptions): Promise<readonly ConfigurationProblem[]> {
    const problems = await Promise.all(
      [...networks]
        .filter(([name]) => !started.has(name))
        .map(([name, ofNetwork]) =>
          inspect ? startOne(name, ofNetwork, mined) : takeUp(name, ofNetwork, mined),
        ),
    );
    if (started.size < networks.size && !closing.signal.aborted) {
      reconnection = setTimeout(() => void startOthers({ inspect: true }), reconnectMs).unref();
    }
    return problems.flat();
  }

  async function startOne(
    name: NetworkName,
    lanes: Lanes,
    mined: StartOptions["mined"],
  ): Promise<readonly ConfigurationProblem[]> {
    const { checks, verdict } = await supervision.inspect(name);
    if (closing.signal.aborted) return [];
    const fatal = checks.filter((check) => check.fatal);
    if (verdict === "refuse") refused.add(name);
    else refused.delete(name);
    if (verdict !== "serve") return fatal.map((check) => ({ name, problem: explainCheck(check) }));
    return takeUp(name, lanes, mined);
  }

  async function takeUp(
    name: NetworkName,
    lanes: Lanes,
    mined: StartOptions["mined"] = () => undefined,
  ): Promise<readonly []> {
    const { recoverer } = options;
    try {
      await Promise.all([
        recoveries.get(name)?.start(recoverer && mined(name, recoverer.address)),
        ...lanes.map(({ relayer }) => relayer.start(mined(name, relayer.operator))),
      ]);
      started.add(name);
      if (reconnection !== undefined) logger.info({ network: name }, "the network is served now");
    } catch (error) {
      if (!closing.signal.aborted) {
        logger.warn({ network: name, err: error }, "the network cannot be reached; trying again");
      }
    }
    return [];
  }

  async function inspect(name: NetworkName): Promise<Inspection> {
    const lanes = networks.get(name);
    if (lanes === undefined) throw new RangeError(`${name} is not configured`);
    const { network } = lanes[0].chain;
    const [inspection, ofSigners] = await Promise.all([
      inspectNetwork({
        network,
        endpoints: endpoints.get(name) ?? [],
        operators: lanes.map(({ relayer }) => relayer.operator),
        recoverer: options.recoverer?.address,
        nextTxNonce: ledger.nextTxNonce,
        now,
        clock,
      }),
      options.inspectSigners === true
        ? Promise.all(signers.map((signer) => checkSigner(signer, network)))
        : [],
    ]);
    return { ...inspection, checks: [...inspection.checks, ...ofSigners] };
  }

  async function inspectAgain(): Promise<void> {
    await Promise.all([...started].map((name) => supervision.inspect(name)));
  }

  async function settled(): Promise<void> {
    await Promise.all([recordings.settled(), catalog?.settled()]);
    const unrecorded = await ledger.finishWrites(finishWritesMs);
    if (unrecorded > 0) logger.error({ writes: unrecorded }, unrecordedDeliveries);
  }

  return {
    facilitator,
    organizations,
    catalog,
    checkHealth,
    settled,
    async start(options = { inspect: true }) {
      if (options.inspect && (await organizations.checkPepper()) === "wrong") {
        const { name, problem, advice } = wrongPepper;
        throw new ConfigurationError([{ name, problem: `${problem}. ${advice}` }]);
      }
      const problems = await startOthers(options);
      if (problems.length > 0) throw new ConfigurationError(problems);
      // Not while the first payments wait for their start.
      hashing = setTimeout(() => void loadFastKeccak(), fastKeccakAfterMs).unref();
    },
    drain() {
      draining = true;
    },
    async stop() {
      clearTimeout(reconnection);
      clearTimeout(hashing);
      clearInterval(repetition);
      closing.abort();
      await Promise.all([
        ...lanes.map(({ relayer }) => relayer.stop()),
        ...[...recoveries.values()].map((recovery) => recovery.stop()),
        inspecting,
      ]);
    },
    async close() {
      // Until now, as answers that were under way needed their leases.
      clearInterval(renewal);
      closed = true;
      await renewing;
      await settled();
      for (const { chain } of lanes) chain.close();
      for (const rpc of [...endpoints.values()].flat()) rpc.close();
      await db.destroy();
    },
  };
}

function explainCheck({ detail, advice }: Check): string {
  return advice === undefined ? detail : `${detail}. ${advice}`;
}
