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
  /** Stops the process and resolves when it has exited. Can be called again. */
  stop(): Promise<void>;
  /** Resolves when the process has exited, for any reason. */
  readonly exited: Promise<void>;
  /** Calls the listener with an error if the process exits without having been stopped. */
  onExit(listener: (error: KitError) => void): void;
  readonly fork?: NodeFork;
};

/** The fork that a node was started from. */
export type NodeFork = {
  readonly kind: "remote" | "recording";
  readonly blockNumber: bigint;
  /** The unanswered calls so far: missing from the recording, or failed because the network is unreachable. */
  failures(): ForkFailures;
  /** Calls the listener for each failure, including earlier ones, but only once per distinct call. */
  onFailure(listener: (error: KitError) => void): void;
  /** Sets whether closing writes the requested recording. Initially false: a failure must not replace a good recording. */
  keepRecording(keep: boolean): void;
  /** Returns the cause of a failed chain setup: a failed call of the fork, if any, otherwise the error itself. */
  explainStart(error: unknown): unknown;
};

/** How often a fork could not answer, and the latest reason. */
export type ForkFailures = { readonly count: number; readonly latest: KitError | undefined };

/** How long a node may take to stop before it is killed. It usually takes about 10 ms. */
const stopGraceMs = 1_000;

/**
 * Starts an anvil node and resolves when it answers with the expected chain id and has mined a block.
 *
 * @throws {KitError} if the node cannot start; no process is left running then
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

  /** Returns the real cause of a failed request if the process has exited or is stopping, otherwise the error itself. */
  const explain = async (error: unknown): Promise<unknown> => {
    if (!(error instanceof RpcUnreachable)) return error;
    // The connection breaks slightly before the exit of the process is reported.
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
      // Logging every request and block only costs time. Panics are still logged.
      ["anvil_setLoggingEnabled", false],
      ...(options.genesisTime === undefined ? [] : [["anvil_setBlockTimestampInterval", 1] as const]),
      // Until the first block is mined, calls at `latest` see timestamp 0.
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
