import { randomBytes } from "node:crypto";
import {
  type Asset,
  builtInNetworks,
  type NetworkName,
  type NetworkRegistry,
} from "../../protocol/networks.ts";
import { requireFree } from "../../service/http/local-server.ts";
import { ConfigurationError, type ConfigurationProblem, KitError } from "../../util/errors.ts";
import { startWatchdog } from "../../util/watchdog.ts";
import { type ForkOptions, readForkOptions } from "../fork/fork-options.ts";
import { type GateHost, type NodeGate, startNodeGate } from "../nodes/node-gate.ts";
import { type LocalNode, startNode } from "../nodes/nodes.ts";
import { endOrphans } from "../nodes/orphans.ts";
import type { FacilitatorContracts } from "./addresses.ts";
import type { SavedChain } from "./prepare-chain.ts";
import { startFork } from "./start-fork.ts";

export type StartChainsOptions = {
  /** The networks to start, each at most once. */
  networks: readonly NetworkName[];
  /** The registry of network names; the built-in networks by default. */
  knownNetworks?: NetworkRegistry | undefined;
  facilitatorContracts: FacilitatorContracts;
  /** The tokens of networks that use one other than USDC. */
  assets?: Readonly<Partial<Record<NetworkName, Asset>>> | undefined;
  /** The sources of forked chains. Their token is the real USDC. */
  fork?: ForkOptions | undefined;
  /** The address that the service listens on. If it is all addresses of this machine, the nodes are reachable there too. */
  host?: string | undefined;
  /** Host names besides `localhost` that callers may use for everything but the payment API, such as a container's name. */
  allowHosts?: readonly string[] | undefined;
  /** The ports of the networks' nodes; free ones by default. */
  rpcPorts?: Readonly<Partial<Record<NetworkName, number>>> | undefined;
  /** Aborts the start; has no effect once the chains run. */
  signal?: AbortSignal | undefined;
  /** Path of the anvil binary; by default the one from this platform's package. */
  anvilBinary?: string | undefined;
  /**
   * Called once, after the nodes are spawned and while they start. For work that keeps this process busy, such as imports,
   * which would otherwise delay the start of the nodes.
   */
  meanwhile?: (() => void) | undefined;
  /** The states that chains continue from, by network. */
  saved?: Readonly<Record<string, SavedChain>> | undefined;
  /** If given, the chains have their own clock. It starts at this time (unix seconds) and stands still between blocks. */
  genesisTime?: number | undefined;
};

export type Chains = Awaited<ReturnType<typeof startChains>>;

/**
 * Starts a chain for each network, all at once, and sets up the facilitator contract, the token and the test payers. The
 * nodes end with this process, however it ends.
 *
 * @throws {ConfigurationError} for invalid networks or ports, {@link KitError} if a node cannot start; none is left running
 *   then
 *
 * @example
 * await using chains = await startChains({
 *   networks: ["base", "polygon"], facilitatorContracts: resolveFacilitatorContracts(),
 * });
 */
export async function startChains(options: StartChainsOptions) {
  const { facilitatorContracts, assets = {}, rpcPorts = {}, allowHosts, signal, genesisTime } = options;
  const host: GateHost = options.host === "0.0.0.0" || options.host === "::" ? options.host : "127.0.0.1";
  const problems = findChainProblems(options);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { knownNetworks = builtInNetworks } = options;
  const networks = options.networks.flatMap((name) => knownNetworks.named(name) ?? []);
  const forks = readForkOptions(options.fork ?? {}, options.networks);
  signal?.throwIfAborted();

  const watchdog = startWatchdog();
  const nodes: LocalNode[] = [];
  const gates: NodeGate[] = [];
  const stop = async () => {
    await Promise.all([...nodes.map((node) => node.stop()), ...gates.map((gate) => gate.close())]);
    await watchdog.close();
  };
  let preparation: Promise<typeof import("./prepare-chain.ts")> | undefined;
  const prepare = () => {
    // Loads the contracts' bytecode.
    preparation ??= import("./prepare-chain.ts");
    return preparation;
  };
  let isBusy = false;
  const onSpawn = () => {
    if (isBusy) return;
    isBusy = true;
    // Deferred, because the other nodes are spawned in this turn of the event loop.
    setImmediate(() => {
      prepare().catch(() => {});
      void endOrphans();
      options.meanwhile?.();
    });
  };
  // Forks query their network before they spawn a node: use that time.
  if (networks.every(({ name }) => forks.has(name))) onSpawn();

  const nodeHost = await findHiddenAddress();
  const results = await Promise.allSettled(
    networks.map(async (network) => {
      const { name, chainId, tier } = network;
      const gate = await startNodeGate({ name, host, allowHosts, port: rpcPorts[name] });
      gates.push(gate);
      const asset = assets[name] ?? network.usdc;
      const facilitatorContract = facilitatorContracts[tier];
      const launch = { watchdog, host: nodeHost, signal, binary: options.anvilBinary, onSpawn };
      const spec = forks.get(name);
      const node = await (spec === undefined
        ? startNode({ ...launch, name, chainId, genesisTime })
        : startFork({ ...launch, network, spec, facilitatorContract, asset }));
      nodes.push(node);
      gate.open(node.rpcUrl);
      const { prepareChain } = await prepare();
      const preparing = prepareChain({
        network,
        facilitatorContract,
        asset,
        node,
        publicRpcUrl: gate.url,
        ownClock: genesisTime !== undefined,
        saved: options.saved?.[name],
      });
      const chain = await preparing.catch((error: unknown) => {
        throw node.fork?.explainStart(error) ?? error;
      });
      return [name, chain] as const;
    }),
  );
  const failures = results.filter((result) => result.status === "rejected").map(({ reason }) => reason);
  if (failures.length > 0 || signal?.aborted === true) {
    await stop();
    signal?.throwIfAborted();
    throw oneError(failures, results.length);
  }
  for (const { fork } of nodes) fork?.keepRecording(true);
  return {
    /** The chains by network, in the requested order. */
    chains: Object.fromEntries(
      results.filter((result) => result.status === "fulfilled").map(({ value }) => value),
    ),
    /** The pids of all started processes: the nodes, and the watchdog last. */
    pids: [...nodes.map(({ pid }) => pid), ...(watchdog.pid === undefined ? [] : [watchdog.pid])],
    /** Calls the listener if a node exits without having been stopped, with an error that names it. */
    onFailure(listener: (error: KitError) => void) {
      for (const node of nodes) node.onExit(listener);
    },
    /** Stops all nodes and resolves when no process is left. Can be called again. */
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function oneError(failures: readonly unknown[], asked: number): unknown {
  // If every node failed for the same reason, such as a missing binary, report it once.
  const messages = new Set(failures.map(String));
  if (messages.size === 1) return failures[0];
  const kitErrors = failures.filter((failure) => failure instanceof KitError);
  return new KitError(`${failures.length} of ${asked} chains did not start`, {
    cause: new AggregateError(failures),
    hints: kitErrors.flatMap(({ message, hints }) => [message, ...hints.map((hint) => `  ${hint}`)]),
  });
}

/** Returns the problems with the requested networks and the ports of their nodes. */
export function findChainProblems(
  options: Pick<StartChainsOptions, "networks" | "rpcPorts" | "knownNetworks">,
): readonly ConfigurationProblem[] {
  const { networks: names, rpcPorts = {}, knownNetworks = builtInNetworks } = options;
  const problems: ConfigurationProblem[] = [];
  for (const [index, name] of names.entries()) {
    if (knownNetworks.named(name) === undefined) {
      const problem = `"${name}" is not one of ${knownNetworks.names.join(", ")}`;
      problems.push({ name: "networks", problem });
    } else if (names.indexOf(name) < index) {
      problems.push({ name: "networks", problem: `names ${name} twice` });
    }
  }
  const taken = new Map<number, string>();
  for (const [network, port] of Object.entries(rpcPorts)) {
    if (port === undefined) continue;
    const name = `rpcPorts.${network}`;
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      problems.push({ name, problem: `${port} is not a port`, example: "8545" });
    }
    const other = taken.get(port);
    if (other !== undefined) problems.push({ name, problem: `is the same port as that of ${other}` });
    taken.set(port, network);
  }
  if (names.length === 0) {
    problems.push({ name: "networks", problem: "names no network", example: '["base"]' });
  }
  return problems;
}

/**
 * Returns a loopback address that web pages cannot guess. Browsers let pages open WebSockets to any port of 127.0.0.1, and
 * anvil accepts them from any origin. If all of 127.0.0.0/8 is loopback, as on Linux, the address is one of 16 million;
 * otherwise it is 127.0.0.1.
 */
export async function findHiddenAddress(): Promise<string> {
  const usual = "127.0.0.1";
  const address = `127.${randomBytes(3).join(".")}`;
  // Avoid network and broadcast addresses.
  if (/\.0$|\.255$/.test(address)) return findHiddenAddress();
  return requireFree(address, 0).then(
    () => address,
    () => usual,
  );
}
