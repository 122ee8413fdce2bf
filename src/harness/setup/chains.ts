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
  /** Which networks; each at most once. */
  networks: readonly NetworkName[];
  /** The registry of network names; the built-in networks by default. */
  knownNetworks?: NetworkRegistry | undefined;
  facilitatorContracts: FacilitatorContracts;
  /** The token of a network, where it is not to be its USDC. */
  assets?: Readonly<Partial<Record<NetworkName, Asset>>> | undefined;
  /** The sources of forked chains; their real USDC is then the token. */
  fork?: ForkOptions | undefined;
  /** Where the service listens. Where that is every address of this machine, the nodes can be reached there too. */
  host?: string | undefined;
  /** Names besides `localhost` that all but the service may be called by, such as that of a container. */
  allowHosts?: readonly string[] | undefined;
  /** The port at which a network's node can be reached; free ones by default. */
  rpcPorts?: Readonly<Partial<Record<NetworkName, number>>> | undefined;
  /** Gives up the start; without effect once the chains run. */
  signal?: AbortSignal | undefined;
  /** Path of the anvil binary; the one of this platform's package by default. */
  anvilBinary?: string | undefined;
  /**
   * Called once, while the nodes start by themselves: for work that keeps this process busy, such as imports. Before the
   * start of the nodes they would delay it.
   */
  meanwhile?: (() => void) | undefined;
  /** The states that chains continue from, by network. */
  saved?: Readonly<Record<string, SavedChain>> | undefined;
  /** Gives the chains a clock of their own that begins there (unix seconds); they then stand still between blocks. */
  genesisTime?: number | undefined;
};

export type Chains = Awaited<ReturnType<typeof startChains>>;

/**
 * Starts a chain for each network, all at once, with the facilitator contract, the token and the test payers in
 * place. However this process ends, its nodes end with it.
 *
 * @throws {ConfigurationError} for ports that cannot be, {@link KitError} when a node cannot start; then none is left
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
    // The contracts' code.
    preparation ??= import("./prepare-chain.ts");
    return preparation;
  };
  let isBusy = false;
  const onSpawn = () => {
    if (isBusy) return;
    isBusy = true;
    // The other nodes are started in this turn of the event loop.
    setImmediate(() => {
      prepare().catch(() => {});
      void endOrphans();
      options.meanwhile?.();
    });
  };
  // A fork asks its network first.
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
    /** By network, in the order in which they were asked for. */
    chains: Object.fromEntries(
      results.filter((result) => result.status === "fulfilled").map(({ value }) => value),
    ),
    /** The pids of everything that was started: the nodes, and the watchdog last. */
    pids: [...nodes.map(({ pid }) => pid), ...(watchdog.pid === undefined ? [] : [watchdog.pid])],
    /** Calls the listener when a node ends without having been asked to, with an error that names it. */
    onFailure(listener: (error: KitError) => void) {
      for (const node of nodes) node.onExit(listener);
    },
    /** Ends all nodes, and resolves when no process is left. Can be called again. */
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function oneError(failures: readonly unknown[], asked: number): unknown {
  // The same failure of every node, such as a missing binary, is one failure.
  const messages = new Set(failures.map(String));
  if (messages.size === 1) return failures[0];
  const kitErrors = failures.filter((failure) => failure instanceof KitError);
  return new KitError(`${failures.length} of ${asked} chains did not start`, {
    cause: new AggregateError(failures),
    hints: kitErrors.flatMap(({ message, hints }) => [message, ...hints.map((hint) => `  ${hint}`)]),
  });
}

/** The problem with the networks that are asked for, and with the ports of their nodes. */
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
 * An address of this machine alone that a web page cannot find by trying: a browser lets it open a WebSocket to any port of
 * 127.0.0.1, and anvil takes it whoever asks. Where the system answers for all of 127.0.0.0/8, as Linux does, it is one of
 * sixteen million; elsewhere 127.0.0.1.
 */
export async function findHiddenAddress(): Promise<string> {
  const usual = "127.0.0.1";
  const address = `127.${randomBytes(3).join(".")}`;
  // Those of the network and of all.
  if (/\.0$|\.255$/.test(address)) return findHiddenAddress();
  return requireFree(address, 0).then(
    () => address,
    () => usual,
  );
}
