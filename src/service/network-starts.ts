import type { ServiceLog } from "../observe/log/logger.ts";
import type { Address } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { ConfigurationProblem } from "../util/errors.ts";
import type { Lanes } from "./facilitator/context.ts";
import type { Check } from "./health/check.ts";
import type { Supervision } from "./health/service-health.ts";
import type { RecoveryLoop } from "./relayer/recovery.ts";

export type StartOptions = {
  inspect: boolean;
  mined?: ((network: NetworkName, account: Address) => number | undefined) | undefined;
};

/** Which networks are served: those that were inspected, and whose transactions in flight were taken up. */
export type NetworkStarts = {
  /** Starts what is not started yet, and is tried again later where that fails. Gives the problems that retrying cannot fix. */
  startAll(options: StartOptions): Promise<readonly ConfigurationProblem[]>;
  started(): readonly NetworkName[];
  /** In words for callers; undefined where it is served. The details are for the operator, and are in the log. */
  whyNotServed(network: NetworkName): string | undefined;
  stop(): void;
};

/** The pause before networks that could not be reached are tried again, in milliseconds. */
const reconnectMs = 5_000;

export function createNetworkStarts(options: {
  networks: ReadonlyMap<NetworkName, Lanes>;
  recoveries: ReadonlyMap<NetworkName, RecoveryLoop>;
  recoverer: Address | undefined;
  supervision: Pick<Supervision, "inspect">;
  /** Aborts when the service stops. */
  closing: AbortSignal;
  log: ServiceLog;
}): NetworkStarts {
  const { networks, recoveries, recoverer, supervision, closing, log } = options;
  const started = new Set<NetworkName>();
  /** Networks that answer, and are not served as they are. */
  const refused = new Set<NetworkName>();
  let reconnection: NodeJS.Timeout | undefined;

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
    whyNotServed(name) {
      if (started.has(name)) return undefined;
      return refused.has(name) ? "not what was configured; the log says more" : "not reached yet";
    },
    stop: () => clearTimeout(reconnection),
  };
}

function explainCheck({ detail, advice }: Check): string {
  return advice === undefined ? detail : `${detail}. ${advice}`;
}
