import { AsyncLocalStorage } from "node:async_hooks";
import { ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { KitError } from "../errors/base.ts";
import { anvilBinary, executable } from "./anvil-binary.ts";
import { createLocalRpc, type LocalRpc, RpcUnreachable } from "./local-rpc.ts";
import type { Watchdog } from "./watchdog.ts";

/** A running anvil node. */
export type LocalNode = LocalRpc & {
  readonly name: string;
  readonly chainId: number;
  readonly rpcUrl: string;
  readonly port: number;
  readonly pid: number;
  /** Ends the process, and resolves when it is gone. Can be called again. */
  stop(): Promise<void>;
  /** Calls the listener when the process ends without having been asked to, with an error that says so. */
  onExit(listener: (error: KitError) => void): void;
};

export type StartNodeOptions = {
  /** What messages call the node: `base`. */
  name: string;
  chainId: number;
  /** Ends the node together with this process. */
  watchdog: Watchdog;
  /** A free port by default. */
  port?: number | undefined;
  /** Gives up the start; without effect once the node runs. */
  signal?: AbortSignal | undefined;
  /** Path of the anvil binary; the one of this platform's package by default. */
  binary?: string | undefined;
  startTimeoutMs?: number | undefined;
};

/** Flags that the typed options of `@viem/anvil` do not know. */
const flags = [
  // A block for every transaction, and one per second without any: the head of an idle chain follows the clock.
  "--mixed-mining",
  // A fixed one, so that an upgrade of anvil does not change the rules.
  "--hardfork",
  "prague",
];

/** Room for some 3,000 single settles in a block, which a relayer under load fills; Base itself has 400 million. */
const gasLimit = 300_000_000;

/** Wei per gas, as usual on layer 2; anvil lowers it from here while blocks are empty. */
const initialBaseFee = 10_000_000;

/** How long a node may take to end when asked before it is killed. It takes some 10 ms. */
const stopGraceMs = 1_000;

/**
 * Starts an anvil node and resolves when it answers with the expected chain id and has mined a block.
 *
 * `@viem/anvil` starts the process and reads from its output when and where it listens. The rest of the life of the
 * process is managed here, because the package does not notice a node that dies, turns a binary it cannot start
 * into an unhandled rejection, collects the whole output in memory, and keeps a timer after stopping.
 *
 * @throws {KitError} when the node cannot start; no process is left then
 */
export async function startNode(options: StartNodeOptions): Promise<LocalNode> {
  const { name, chainId, signal } = options;
  const { child, pid, port, lastOutput } = await launch(options);
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
      // A log line per request and block costs this process a tenth of its time under load. Panics are still shown.
      ["anvil_setLoggingEnabled", false],
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

type Launched = {
  child: ChildProcess;
  pid: number;
  port: number;
  /** The last lines the process has written. */
  lastOutput(): readonly string[];
};

/** Carries the identity of a start into the `child_process` channel, whose messages come in its async context. */
const startContext = new AsyncLocalStorage<object>();

async function launch(options: StartNodeOptions): Promise<Launched> {
  const { name, chainId, watchdog, port, signal, startTimeoutMs = 30_000 } = options;
  signal?.throwIfAborted();
  const binary = options.binary === undefined ? anvilBinary() : executable(options.binary);
  const { createAnvil } = await importViemAnvil();

  const anvil = createAnvil({
    anvilBinary: binary,
    host: "127.0.0.1",
    // 0: the system gives a free port at the moment of binding, so no two starts can be given the same one.
    port: port ?? 0,
    chainId,
    // Deriving the ten development accounts takes half of anvil's start-up time.
    accounts: 0,
    blockTime: 1,
    gasLimit,
    blockBaseFeePerGas: initialBaseFee,
    // Otherwise a killed node leaves its states, gigabytes in the end, in the user's home.
    pruneHistory: true,
    startTimeout: startTimeoutMs + 1_000,
    execArgs: ([file, args, execOptions]) => [
      file,
      [...args, ...flags],
      // `detached`: Ctrl-C in a terminal reaches the whole process group, and the nodes are still needed while the
      // service finishes. `buffer: false`: otherwise all output is kept, and the node killed at 100 MB.
      {
        ...execOptions,
        buffer: false,
        cleanup: false,
        detached: process.platform !== "win32",
        windowsHide: true,
      },
    ],
  });

  let output = "";
  const stopListening = anvil.on("message", (message) => {
    output += message;
  });

  // `@viem/anvil` does not give the process away, and its pid is needed to guard and to kill it.
  const context = {};
  let child: ChildProcess | undefined;
  let spawnError: Error | undefined;
  const onProcess = (message: unknown) => {
    if (startContext.getStore() !== context) return;
    if (typeof message !== "object" || message === null || !("process" in message)) return;
    if (!(message.process instanceof ChildProcess)) return;
    const started = message.process;
    child = started;
    // A process that cannot be spawned never exits, and the package waits only for an exit.
    started.once("error", (error) => {
      spawnError = error;
      started.emit("exit", null, null);
    });
    // The message comes from the constructor: by the next microtask the process is spawned, and its promise is on it.
    queueMicrotask(() => {
      if (started.pid !== undefined) watchdog.guard(started.pid);
      if ("catch" in started && typeof started.catch === "function") started.catch(() => {});
    });
  };
  const kill = () => child?.kill("SIGKILL");
  let tooLate = false;
  const timer = setTimeout(() => {
    tooLate = true;
    kill();
  }, startTimeoutMs);
  signal?.addEventListener("abort", kill);
  subscribe("child_process", onProcess);
  try {
    await startContext.run(context, () => anvil.start());
    const listening = /Listening on \S+:(\d+)\s/.exec(output);
    if (child?.pid === undefined || listening === null) {
      kill();
      throw new KitError(`Where the ${name} node listens could not be read from its output`);
    }
    return {
      child,
      pid: child.pid,
      port: Number(listening[1]),
      lastOutput: () => lines(anvil.logs.join("")).slice(-5),
    };
  } catch (cause) {
    if (child?.pid !== undefined) {
      await whenExited(child);
      watchdog.release(child.pid);
    }
    signal?.throwIfAborted();
    if (cause instanceof KitError) throw cause;
    if (port !== undefined && (await isTaken(port))) {
      throw new KitError(`The ${name} node cannot listen on port ${port}: it is in use`, {
        cause,
        hints: ["Choose another port, or none: a free one is found then."],
      });
    }
    if (spawnError !== undefined) {
      throw new KitError(`This system cannot run the anvil binary at ${binary}`, {
        cause: spawnError,
        hints: ["On Linux it needs glibc 2.35 or newer, as in Debian 12 or Ubuntu 22.04; Alpine has none."],
      });
    }
    throw new KitError(`The ${name} node did not start${tooLate ? ` within ${startTimeoutMs} ms` : ""}`, {
      cause,
      hints: [`It was started as ${binary}`, ...lines(output).slice(-5)],
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", kill);
    unsubscribe("child_process", onProcess);
    stopListening();
  }
}

async function importViemAnvil(): Promise<typeof import("@viem/anvil")> {
  try {
    return await import("@viem/anvil");
  } catch (cause) {
    throw new KitError("The package @viem/anvil, which starts the local chains, is not installed", {
      cause,
      hints: ["It is an optional dependency: npm install @viem/anvil @foundry-rs/anvil"],
    });
  }
}

function whenExited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once("exit", () => resolve()));
}

async function isTaken(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return false;
  } catch {
    return true;
  } finally {
    server.close();
  }
}

function lines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
