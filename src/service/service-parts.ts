import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Chain } from "../chain/chain.ts";
import { connect, createChain } from "../chain/create-chain.ts";
import { openEndpoints } from "../chain/deploy/endpoints.ts";
import { createChainPublisher, methodsAbout } from "../chain/publish-chain.ts";
import type { Rpc } from "../chain/rpc/rpc.ts";
import type { CoinSigner, Signer } from "../chain/signing/local-signer.ts";
import type { NetworkConfig } from "../config/serve-config.ts";
import { createLedger } from "../ledger/create-ledger.ts";
import type { Database } from "../ledger/database/database.ts";
import type { Leases, Ledger } from "../ledger/ledger.ts";
import { publishLedger } from "../ledger/publish-ledger.ts";
import { recoveryStates } from "../ledger/recoveries.ts";
import type { WaysToPay } from "../methods/on-chain/ways-to-pay.ts";
import { channels } from "../observe/channels/channels.ts";
import type { ServiceLog } from "../observe/log/logger.ts";
import { noMetrics } from "../observe/metrics/metrics.ts";
import type { MetricSources, OperatorFunds } from "../observe/metrics/sources.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { withTimeout } from "../util/waiting.ts";
import type { Lanes } from "./facilitator/context.ts";
import type { ClockTolerance } from "./health/inspect-network.ts";
import type { AppOptions } from "./http/app.ts";

export type ServiceOptions = {
  networks: readonly NetworkConfig[];
  /** The operators that send settle transactions, each on every network; they share the load. */
  signers: readonly [Signer, ...Signer[]];
  /** Pays out the value of direct submissions in the contract. Without it they wait for `x402-kit recover`. */
  recoverer?: Signer | undefined;
  /**
   * Gives payers gas money for their approvals on networks that have limits for it. Nothing else may send with this account.
   */
  sponsor?: CoinSigner | undefined;
  /** Open and at the newest schema. The service closes it when it is closed itself. */
  database: Database;
  /** The secret that API keys are hashed with. */
  apiKeyPepper: string;
  /** How long a settle waits for its outcome, in both versions; `settleWaitDefaultsMs` by default. */
  settleWaitMs?: number | undefined;
  anonymousVerify?: boolean;
  /** True if resources that organizations were paid for are recorded and shown; false by default. */
  discovery?: boolean | undefined;
  /** Protections of the HTTP side, and its metrics; see `AppOptions`. */
  http?: Pick<
    AppOptions,
    "metrics" | "rateLimits" | "pressure" | "connections" | "trustProxy" | "timeouts" | "docs" | "corsOrigins"
  >;
  /** How long the leases of a dead instance stay locked, in milliseconds; 30 s by default. */
  leaseMs?: number;
  /** How far a chain's newest block may be from the clock before the network counts as not ready. */
  clock?: ClockTolerance | undefined;
  /** The accepted payment methods; all by default. */
  ways?: WaysToPay | undefined;
  /** How often served networks are inspected again, in milliseconds; never by default. */
  inspectEveryMs?: number;
  /** True if an inspection tests the signers, which are remote. */
  inspectSigners?: boolean;
  /** True if an operator that is new to the ledger must be new to the chain too; false by default, as on local chains. */
  refusesUsedOperators?: boolean;
  /**
   * Identifies the service on the channels (`src/observe/channels`), since a process may run several. A random one by
   * default.
   */
  serviceId?: string;
  logger: Logger;
};

/**
 * The parts that a service works with. {@link openParts} makes the real ones; tests of crashes and faults pass others
 * that wrap them.
 */
export type ServiceParts = {
  /** {@link ServiceOptions.serviceId}, with its default. */
  serviceId: string;
  ledger: Ledger;
  /** The chains of each network, one per signer, in the order of the options. */
  chains: ReadonlyMap<NetworkName, readonly [Chain, ...Chain[]]>;
  /** The separate RPC endpoints of each network, for inspections. */
  endpoints: ReadonlyMap<NetworkName, readonly Rpc[]>;
};

export const usualLeaseMs = 30_000;

/** Opens the ledger and the chains of a service, connected as in production. */
export function openParts(options: ServiceOptions): ServiceParts {
  const { database, leaseMs = usualLeaseMs, signers, serviceId = crypto.randomUUID() } = options;
  const { metrics = noMetrics } = options.http ?? {};
  const chains = new Map<NetworkName, readonly [Chain, ...Chain[]]>();
  const endpoints = new Map<NetworkName, readonly Rpc[]>();
  for (const network of options.networks) {
    const providers = network.rpcUrls.map((url) => URL.parse(url)?.host ?? "none");
    const counted = metrics.rpc(network.name, providers);
    const rpc = connect({
      network,
      observer: {
        exchanged(exchange) {
          counted.exchanged(exchange);
          channels.rpc.publish(() => {
            const { endpoint, purpose, methods, durationMs, error, questions } = exchange;
            return {
              kind: "rpc",
              at: Date.now(),
              serviceId,
              network: network.name,
              endpoint,
              purpose,
              methods,
              durationMs,
              error,
              about: methodsAbout(questions),
            };
          });
        },
      },
    });
    const publishChain = createChainPublisher(network.name, serviceId);
    const createChainOf = ({ address }: Signer) =>
      publishChain(createChain({ network, operator: address, rpc }));
    const [first, ...others] = signers;
    chains.set(network.name, [createChainOf(first), ...others.map(createChainOf)]);
    endpoints.set(network.name, providers.length === 1 ? [rpc] : openEndpoints(network));
  }
  return {
    serviceId,
    ledger: publishLedger(
      createLedger({
        db: database,
        instanceId: crypto.randomUUID(),
        leaseMs,
        onLostDelivery: (settlement) =>
          options.logger.warn(
            { settlement },
            "a success was handed over after its lease was lost, or recorded twice: another request may have been given it too",
          ),
      }),
      { serviceId, networks: options.networks },
    ),
    chains,
    endpoints,
  };
}

/** The limit for reading the gas money of one network, in milliseconds; a reader of the metrics waits a little longer. */
const timeoutMs = 2_000;

/** The values that a service's metrics look up when they are read. */
export function createMetricSources(options: {
  networks: ReadonlyMap<NetworkName, Lanes>;
  ledger: Pick<Ledger, "outcomes" | "recoveries">;
  health: MetricSources["health"];
  ways: WaysToPay;
}): Omit<MetricSources, "underWay"> {
  const { networks, ledger, health, ways } = options;

  async function fundsOn(network: NetworkName, lanes: Lanes): Promise<readonly OperatorFunds[]> {
    const [{ chain }] = lanes;
    const operators = lanes.map(({ relayer }) => relayer.operator);
    const { settlement } = ways.usual(chain.network);
    const { balances, settleCost } = await withTimeout(chain.gasMoney(operators, settlement), timeoutMs);
    return operators.flatMap((operator, index) => {
      const balance = balances[index];
      return balance === undefined ? [] : [{ network, operator, balance, transactionCost: settleCost }];
    });
  }

  return {
    health,

    lanes: () =>
      [...networks].flatMap(([network, lanes]) =>
        lanes.map(({ relayer, canSend, isLow }) => ({
          network,
          operator: relayer.operator,
          canSend: canSend(),
          isLow: isLow(),
          ...relayer.load(),
        })),
      ),

    async pending() {
      const unfinished = await ledger.outcomes.unfinished();
      return [...networks.keys()].map((network) => {
        const found = unfinished.find((one) => one.network === network);
        return { network, count: found?.count ?? 0, oldestClaimedAt: found?.oldestClaimedAt ?? null };
      });
    },

    async directSubmissions() {
      const counts = await ledger.recoveries.recoveryCounts();
      return [...networks.keys()].flatMap((network) =>
        recoveryStates.map((state) => ({
          network,
          state,
          count: counts.find((one) => one.network === network && one.state === state)?.count ?? 0,
        })),
      );
    },

    async gifts() {
      const today = [...networks].map(async ([network, [{ sponsor }]]) => {
        return sponsor === undefined ? [] : [{ network, ...(await sponsor.today()) }];
      });
      return (await Promise.all(today)).flat();
    },

    async funds() {
      // A network that does not answer must not hide the gas money on the others.
      const asked = [...networks].map(([network, lanes]) => fundsOn(network, lanes));
      const answers = await Promise.allSettled(asked);
      return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    },
  };
}

/** The pause before a failed renewal is retried, in milliseconds. */
const renewAgainMs = 200;

/**
 * Renews the leases of this instance six times per lease duration, and retries failed writes.
 *
 * @returns a function that stops it, and resolves when a renewal in progress has ended
 */
export function renewLeasesRegularly(
  leases: Pick<Leases, "renewLeases" | "retryWrites">,
  { leaseMs, log }: { leaseMs: number; log: ServiceLog },
): () => Promise<void> {
  let renewing: Promise<void> | undefined;
  let ended = false;

  /** Retries failures right away: one may have taken half a lease, and other instances take leases that are not renewed. */
  async function renew(): Promise<void> {
    for (;;) {
      try {
        return await leases.renewLeases();
      } catch (error) {
        log.error({ err: error }, "leases could not be renewed");
      }
      if (ended) return;
      await sleep(renewAgainMs);
    }
  }

  const renewal = setInterval(() => {
    // A slow renewal, caused by a slow database, is not slowed further by starting the next.
    renewing ??= renew().finally(() => {
      renewing = undefined;
    });
    // In parallel: if this takes longer than a lease, another instance would give the successes that are to be recorded.
    void leases.retryWrites();
  }, leaseMs / 6);
  renewal.unref();

  return async () => {
    clearInterval(renewal);
    ended = true;
    await renewing;
  };
}
