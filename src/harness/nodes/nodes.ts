import { setTimeout as sleep } from "node:timers/promises";
import { KitError } from "../../errors.ts";
import type { ForkSource } from "../fork/fork-source.ts";
import { type LaunchOptions, launchAnvil, whenExited } from "./launch-anvil.ts";
import { createLocalRpc, type LocalRpc, RpcUnreachable } from "./local-rpc.ts";

/** A running anvil node. */
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
  /** What it is forked from, where it is. */
  readonly fork?: Pick<
    ForkSource,
    "kind" | "blockNumber" | "failures" | "onFailure" | "keepRecording" | "explainStart"
  >;
};

/** How long a node may take to end when asked before it is killed. It takes some 10 ms. */
const stopGraceMs = 1_000;

/**
 * Starts an anvil node and resolves when it answers with the expected chain id and has mined a block.
 *
 * @throws {KitError} when the node cannot start; no process is left then
 */
export async function startNode(options: LaunchOptions): Promise<LocalNode> {
  const { name, chainId, signal } = options;
  const { child, pid, port, lastOutput } = await launchAnvil(options);
  const rpcUrl = `http://127.0.0.1:${port}`;
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

  /** What a failed request really means when the process is gone or going. */
  const explain = async (error: unknown): Promise<unknown> => {
    if (!(error instanceof RpcUnreachable)) return error;
    // The connection breaks a moment before the exit of the process is known.
    await Promise.race([exited, sleep(200, undefined, { ref: false })]);
    if (death !== undefined) return death;
    if (stopping !== undefined) return new KitError(`The ${name} node was stopped`, { cause: error });
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
      // Nobody reads a line per request and block. Panics are still written.
      ["anvil_setLoggingEnabled", false],
      ...(options.genesisTime === undefined ? [] : [["anvil_setBlockTimestampInterval", 1] as const]),
    ]);
    // Before the first block, calls at `latest` see the time 0.
    await node.request("evm_mine");
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
