import type { Database } from "../ledger/database/database.ts";
import { createWriteCheck } from "../ledger/database/transactions.ts";
import type { ServiceLog } from "../observe/log/logger.ts";
import type { NetworkHealth } from "../protocol/answers.ts";
import { type Address, sameAddress } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { ConfigurationProblem } from "../util/errors.ts";
import { withTimeout } from "../util/waiting.ts";
import type { Lanes } from "./facilitator/context.ts";
import type { Check } from "./health/check.ts";
import { permit2CheckName } from "./health/check-contract.ts";
import { warnOfClock } from "./health/check-database.ts";
import { sponsorCheckName, warnsOfGasMoney } from "./health/check-operators.ts";
import {
  type ClockTolerance,
  chainIdCheckName,
  confirmingCheckName,
  type Inspection,
} from "./health/inspect-network.ts";
import { wrongPepper } from "./organizations/key-issuing.ts";
import type { Organizations } from "./organizations/organizations.ts";
import type { RecoveryLoop } from "./relayer/recovery.ts";

/** How long readiness waits for a network's newest block, in milliseconds. */
const headTimeoutMs = 2_000;

export type HealthOptions = {
  networks: ReadonlyMap<NetworkName, Lanes>;
  database: Database;
  organizations: Pick<Organizations, "checkPepper">;
  /** How far a chain's newest block may be from the clock. */
  clock: ClockTolerance;
  now: () => number;
  log: ServiceLog;
  /** Returns why a network accepts no payments at the moment; undefined if it does. */
  whyNotServed(network: NetworkName): string | undefined;
  supervision: Pick<Supervision, "limits">;
};

/**
 * Makes the check if payments can be settled, by network, for `GET /readyz` and the metrics. Problems of all networks
 * are logged when they begin and when they end.
 */
export function createHealthCheck(options: HealthOptions): () => Promise<Record<string, NetworkHealth>> {
  const { networks, organizations, clock, now, log, whyNotServed, supervision } = options;
  const checkWrites = createWriteCheck(options.database);
  let databaseProblem: string | null = null;
  let isPepperWrong = false;

  async function findDatabaseProblem(): Promise<string | null> {
    const problem = await checkWrites();
    if (problem !== databaseProblem) {
      databaseProblem = problem;
      if (problem === null) log.info("the database takes writes again");
      else
        log.error({ problem }, "the database keeps nothing that is written, so no payment should be settled");
    }
    return problem;
  }

  /** The pepper may be changed in the database while this process runs with the old one. */
  async function findPepperProblem(): Promise<string | null> {
    const state = await organizations.checkPepper().catch(() => "unknown" as const);
    const { name, problem, advice } = wrongPepper;
    const sentence = `${name} ${problem}`;
    if (state === "wrong" && !isPepperWrong) log.error({ advice }, sentence);
    isPepperWrong = state === "wrong";
    return isPepperWrong ? sentence : null;
  }

  /** Returns what prevents payments on a network, by its newest block and its operators; lesser problems are `warnings`. */
  async function inspect(lanes: Lanes): Promise<{ problem: string } | { warnings: readonly string[] }> {
    const { timestamp } = await withTimeout(lanes[0].chain.head(), headTimeoutMs);
    const age = Math.floor(now() / 1000) - Number(timestamp);
    if (age > clock.behind) return { problem: `the newest block is ${age} s old` };
    if (age < -clock.ahead) {
      return { problem: `the newest block is ${-age} s ahead of this machine's clock` };
    }
    const able = lanes.filter((lane) => lane.canSend());
    if (able.length === 0) return { problem: "no operator can settle; the log says why" };
    const vanished = lanes.reduce((sum, { relayer }) => sum + relayer.load().vanished, 0);
    if (vanished > 0) {
      return { problem: `${vanished} mined transactions vanished in a reorganization; they are sent again` };
    }
    const unconfirmed = lanes.reduce((sum, { relayer }) => sum + relayer.load().unconfirmed, 0);
    const unproven = lanes.reduce((sum, { relayer }) => sum + relayer.load().unproven, 0);
    const unable = lanes.length - able.length;
    const low = able.filter((lane) => lane.isLow());
    return {
      warnings: [
        ...(unable === 0 ? [] : [`${unable} of ${lanes.length} operators cannot settle; the log says why`]),
        ...(unconfirmed === 0
          ? []
          : [`${unconfirmed} mined transactions wait until two RPC endpoints say the same of them`]),
        ...(unproven === 0
          ? []
          : [
              `${unproven} mined transactions do not prove what became of their payments; the log names them`,
            ]),
        ...low.map(({ relayer }) => `the gas money of ${relayer.operator} is running low`),
      ],
    };
  }

  async function checkNetwork(name: NetworkName, lanes: Lanes): Promise<NetworkHealth> {
    const reason = whyNotServed(name);
    if (reason !== undefined) return { ready: false, detail: reason };
    const found = await inspect(lanes).catch(() => ({ problem: "the RPC does not answer" }));
    if ("problem" in found) return { ready: false, detail: found.problem };
    const clock = warnOfClock(options.database)?.detail ?? [];
    const details = [...found.warnings, ...supervision.limits(name)].concat(clock);
    return { ready: true, detail: details.join("; ") || "ok" };
  }

  return async () => {
    const everywhere = (await findDatabaseProblem()) ?? (await findPepperProblem());
    const ofEach = [...networks].map(
      async ([name, lanes]): Promise<[string, NetworkHealth]> => [
        name,
        everywhere === null ? await checkNetwork(name, lanes) : { ready: false, detail: everywhere },
      ],
    );
    return Object.fromEntries(await Promise.all(ofEach));
  };
}

/** Checks that limit which payments can be taken, or taken in time, if they are not ok. */
const limiting: ReadonlySet<string> = new Set([
  permit2CheckName,
  sponsorCheckName,
  confirmingCheckName,
  chainIdCheckName,
]);

type Supervision = ReturnType<typeof createSupervision>;

/** Repeats the inspection of a service's networks while it runs. */
export function createSupervision(options: {
  inspect: (network: NetworkName) => Promise<Inspection>;
  log: ServiceLog;
}) {
  const { log } = options;
  const found = new Map<NetworkName, readonly Check[]>();

  const checksOf = (network: NetworkName, operator: Address) =>
    (found.get(network) ?? []).filter(
      ({ account }) => account !== undefined && sameAddress(account, operator),
    );

  return {
    /** Inspects a network, logs new problems, and remembers the result. */
    async inspect(network: NetworkName): Promise<Inspection> {
      const inspection = await options.inspect(network);
      const bad = inspection.checks.filter(({ status }) => status === "warning" || status === "failed");
      const before = found.get(network) ?? [];
      const known = new Set(before.map(keyOf));
      for (const check of bad) {
        const { name, detail, advice, fatal } = check;
        if (known.has(keyOf(check))) continue;
        log[fatal ? "error" : "warn"]({ network, advice }, `${name}: ${detail}`);
      }
      if (before.length > 0 && bad.length === 0)
        log.info({ network }, "every check of the network is ok again");
      found.set(network, bad);
      return inspection;
    },

    /** The configured kinds of payment that a network cannot take, by the last inspection. */
    limits: (network: NetworkName): readonly string[] =>
      (found.get(network) ?? []).flatMap(({ name, detail }) =>
        // With several endpoints, the name of a check ends with the number of its endpoint.
        limiting.has(name.replace(/ \d+$/, "")) ? [detail] : [],
      ),
    /**
     * Returns true if an operator could send on a network at the last inspection: it has its role, gas money and its signer.
     */
    canSend: (network: NetworkName, operator: Address) =>
      !checksOf(network, operator).some(({ status }) => status === "failed"),
    /** Returns true if an operator's gas money was running low at the last inspection. */
    isLow: (network: NetworkName, operator: Address) => checksOf(network, operator).some(warnsOfGasMoney),
  };
}

/** A changed balance is not a new problem. */
function keyOf({ name, status, account, detail }: Check): string {
  return `${name} ${status} ${account ?? detail}`;
}

export type StartOptions = {
  inspect: boolean;
  mined?: ((network: NetworkName, account: Address) => number | undefined) | undefined;
};

/** The pause before unreachable networks are tried again, in milliseconds. */
const reconnectMs = 5_000;

/** Tracks which networks are served: those that were inspected, and whose transactions in flight were adopted. */
export function createNetworkStarts(options: {
  networks: ReadonlyMap<NetworkName, Lanes>;
  recoveries: ReadonlyMap<NetworkName, RecoveryLoop>;
  recoverer: Address | undefined;
  supervision: Pick<Supervision, "inspect">;
  /** Aborts when the service stops. */
  closing: AbortSignal;
  log: ServiceLog;
}) {
  const { networks, recoveries, recoverer, supervision, closing, log } = options;
  const started = new Set<NetworkName>();
  /** Networks that answer, but not as configured. */
  const refused = new Set<NetworkName>();
  let reconnection: NodeJS.Timeout | undefined;

  /** Starts networks that are not started yet, and retries failures later. Returns the problems that retrying cannot fix. */
  async function startAll({ inspect, mined }: StartOptions): Promise<readonly ConfigurationProblem[]> {
    const problems = await Promise.all(
      [...networks]
        .filter(([name]) => !started.has(name))
        .map(([name, lanes]) => (inspect ? startOne(name, lanes, mined) : takeUp(name, lanes, mined))),
    );
    if (started.size < networks.size && !closing.aborted) {
      reconnection = setTimeout(() => void startAll({ inspect: true }), reconnectMs).unref();
    }
    return problems.flat();
  }

  async function startOne(
    name: NetworkName,
    lanes: Lanes,
    mined: StartOptions["mined"],
  ): Promise<readonly ConfigurationProblem[]> {
    const { checks, verdict } = await supervision.inspect(name);
    if (closing.aborted) return [];
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
    try {
      await Promise.all([
        recoveries.get(name)?.start(recoverer && mined(name, recoverer)),
        ...lanes.map(({ relayer }) => relayer.start(mined(name, relayer.operator))),
      ]);
      started.add(name);
      if (reconnection !== undefined) log.info({ network: name }, "the network is served now");
    } catch (error) {
      if (!closing.aborted) {
        log.warn({ network: name, err: error }, "the network cannot be reached; trying again");
      }
    }
    return [];
  }

  return {
    startAll,
    started: () => [...started],
    /** A text for callers; undefined if it is served. Details are for the operator, and are in the log. */
    whyNotServed(name: NetworkName): string | undefined {
      if (started.has(name)) return undefined;
      return refused.has(name) ? "not what was configured; the log says more" : "not reached yet";
    },
    stop: () => clearTimeout(reconnection),
  };
}

function explainCheck({ detail, advice }: Check): string {
  return advice === undefined ? detail : `${detail}. ${advice}`;
}
