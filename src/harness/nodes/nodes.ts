import { setTimeout as sleep } from "node:timers/promises";
import { createLocalRpc, type LocalRpc, RpcUnreachable } from "../../chain/rpc/local-rpc.ts";
import { KitError } from "../../util/errors.ts";
import { type LaunchOptions, launchAnvil, whenExited } from "./launch-anvil.ts";

export type LocalNode = LocalRpc & {
  readonly name: string;
  readonly chainId: number;
  readonly rpcUrl: string;
  readonly port: number;
  readonly pid: number;
  /** Ends the process, and resolves when it is gone. Can be called again. */
  stop(): Promise<void>;
  /** Resolves when the process has ended, however it came to that. */
  readonly exited: Promise<void>;
  /** Calls the listener when the process ends without having been asked to, with an error that says so. */
  onExit(listener: (error: KitError) => void): void;
  readonly fork?: NodeFork;
};

/** The fork that a node was started from, as it reports it. */
export type NodeFork = {
  readonly kind: "remote" | "recording";
  readonly blockNumber: bigint;
  /** The unanswered calls so far: those missing from the recording, or to a network that went away. */
  failures(): ForkFailures;
  /** Calls the listener at each failure, once for the same call. */
  onFailure(listener: (error: KitError) => void): void;
  /** Sets whether closing writes the requested recording. Not at first: a failure must not replace a good one. */
  keepRecording(keep: boolean): void;
  /** Why a chain could not be put in place on the fork: what could not be asked comes before what came of that. */
  explainStart(error: unknown): unknown;
};

/** How often a fork could not answer, and why it last could not. */
export type ForkFailures = { readonly count: number; readonly latest: KitError | undefined };

/** How long a node may take to end when asked before it is killed. It takes some 10 ms. */
const stopGraceMs = 1_000;

/**
 * Starts an anvil node and resolves when it answers with the expected chain id and has mined a block.
 *
 * @throws {KitError} when the node cannot start; no process is left then
 */
export async function startNode(options: LaunchOptions): Promise<LocalNode> {
  const { name, chainId, signal, host = "127.0.0.1" } = options;
  const { child, pid, port, lastOutput } = await launchAnvil({ ...options, host });
  const rpcUrl = `http://${host}:${port}`;
  const rpc = createLocalRpc(rpcUrl);
  const listeners: ((error: KitError) => void)[] = [];
  let stopping: Promise<void> | undefined;
  let death: KitError | undefined;

  const exited = whenExited(child).then(() => {
    options.watchdog.release(pid);
    if (stopping !== undefined) return;
    const how = child.signalCode === null ? `with exit code ${child.exitCode}` : `by ${child.signalCode}`;
    death = new KitError(`The ${name} node ended unexpectedly, ${how}`, { hints: lastOutput() });
    for (const listener of listeners) listener(death);
  });

  const stop = () => {
    stopping ??= (async () => {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), stopGraceMs);
      await exited;
      clearTimeout(timer);
    })();
    return stopping;
  };

  /** The real cause of a failed request when the process is gone or going. */
  const explain = async (error: unknown): Promise<unknown> => {
    if (!(error instanceof RpcUnreachable)) return error;
    // The connection breaks a moment before the exit of the process is known.
    await Promise.race([exited, sleep(200, undefined, { ref: false })]);
    if (death !== undefined) return death;
    if (stopping !== undefined)
      return new KitError(`The ${name} node was stopped`, { cause: error, code: "closed" });
    return error;
  };

  const node: LocalNode = {
    name,
    chainId,
    rpcUrl,
    port,
    pid,
    stop,
    exited,
    onExit(listener) {
      if (death !== undefined) listener(death);
      else listeners.push(listener);
    },
    async request(method, ...params) {
      try {
        return await rpc.request(method, ...params);
      } catch (error) {
        throw await explain(error);
      }
    },
    async batch(calls) {
      try {
        return await rpc.batch(calls);
      } catch (error) {
        throw await explain(error);
      }
    },
  };

  try {
    signal?.throwIfAborted();
    const [answer] = await node.batch([
      ["eth_chainId"],
      // A line per request and block would only take time. Panics are still written.
      ["anvil_setLoggingEnabled", false],
      ...(options.genesisTime === undefined ? [] : [["anvil_setBlockTimestampInterval", 1] as const]),
      // Before the first block, calls at `latest` see the time 0.
      ["evm_mine"],
    ]);
    if (Number(answer) !== chainId) {
      throw new KitError(`The ${name} node answers with chain id ${answer} instead of ${chainId}`);
    }
    signal?.throwIfAborted();
    return node;
  } catch (error) {
    await stop();
    throw error;
  }
}
