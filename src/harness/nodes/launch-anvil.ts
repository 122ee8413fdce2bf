import { AsyncLocalStorage } from "node:async_hooks";
import { ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { KitError } from "../../util/errors.ts";
import type { Watchdog } from "../../util/watchdog.ts";
import { nodeName } from "./orphans.ts";

export type LaunchOptions = {
  /** The node's name in messages, such as `base`. */
  name: string;
  chainId: number;
  /** Kills the node if this process dies. */
  watchdog: Watchdog;
  /** Aborts the start; has no effect once the node runs. */
  signal?: AbortSignal | undefined;
  /** Path of the anvil binary; by default the one from this platform's package. */
  binary?: string | undefined;
  /**
   * Unix seconds of the first block. If given, the chain has its own clock: each block is one second after its parent and
   * holds at most one transaction. Otherwise chain time follows this machine's clock.
   */
  genesisTime?: number | undefined;
  /** The address to listen on, at a free port; 127.0.0.1 by default. */
  host?: string | undefined;
  startTimeoutMs?: number | undefined;
  /** Called once the process has spawned, before it listens. */
  onSpawn?: (() => void) | undefined;
  /** Forks a chain instead of starting an empty one. The URL is visible in the process arguments. */
  fork?: { url: string; blockNumber: bigint } | undefined;
};

/** Flags that the typed options of `@viem/anvil` do not cover. */
const flags = [
  // Pinned, so that an upgrade of anvil does not change the EVM rules.
  "--hardfork",
  "prague",
  // Otherwise any web page may call the node.
  "--no-cors",
];

/** Ten times anvil's default: room for some 3,000 single settles in a block, as a relayer under load needs. */
const gasLimit = 300_000_000;

/** In wei per gas, typical of layer 2. While blocks are empty, anvil lowers the fee from here. */
export const initialBaseFee = 10_000_000;

/** How many block states are kept in memory: enough for reorgs, and for calls at a head that is no longer the newest. */
const statesKept = 64;

/** Identifies the start in messages of the `child_process` channel, which arrive in the async context of the spawn. */
const startContext = new AsyncLocalStorage<object>();

/**
 * Starts an anvil process through `@viem/anvil`, which reads from the output when and where anvil listens. Nothing else of
 * that package is used: it does not notice if the node dies, turns a binary that cannot start into an unhandled rejection,
 * keeps the whole output in memory, and leaves a timer running after stopping.
 *
 * @throws {KitError} if anvil does not start listening; no process is left running then
 */
export async function launchAnvil(options: LaunchOptions) {
  const { name, watchdog, signal, startTimeoutMs = usualStartTimeoutMs } = options;
  signal?.throwIfAborted();
  const binary = options.binary === undefined ? anvilBinary() : executable(options.binary);
  const anvil = await describeAnvil(binary, options);
  let output = "";
  const { promise: listening, resolve: listens } = Promise.withResolvers<number>();
  const stopReading = anvil.on("message", (message) => {
    output += message;
    const listeningPort = /Listening on \S+:(\d+)\s/.exec(output)?.[1];
    if (listeningPort !== undefined) listens(Number(listeningPort));
  });

  // `@viem/anvil` does not expose the process, and its pid is needed to guard and to kill it.
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
      if (started.pid !== undefined) return;
      spawnError = error;
      started.emit("exit", null, null);
    });
    // The message is sent by the constructor. By the next microtask the process has its pid and its promise.
    queueMicrotask(() => {
      if (started.pid !== undefined) {
        watchdog.guard(started.pid);
        options.onSpawn?.();
      }
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
    // The rest of the line may arrive in a separate chunk.
    const listeningPort = await Promise.race([listening, sleep(1_000, undefined, { ref: false })]);
    if (child?.pid === undefined || listeningPort === undefined) {
      kill();
      throw new KitError(`Where the ${name} node listens could not be read from its output`);
    }
    return {
      child,
      pid: child.pid,
      port: listeningPort,
      lastOutput: () => lines(anvil.logs.join("")).slice(-5),
    };
  } catch (cause) {
    if (child?.pid !== undefined) {
      await whenExited(child);
      watchdog.release(child.pid);
    }
    signal?.throwIfAborted();
    if (cause instanceof KitError) throw cause;
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
    stopReading();
  }
}

const usualStartTimeoutMs = 30_000;

/** Creates an anvil that is not started yet. */
async function describeAnvil(binary: string, options: LaunchOptions) {
  const { chainId, genesisTime, fork } = options;
  const { startTimeoutMs = usualStartTimeoutMs, host = "127.0.0.1" } = options;
  const { createAnvil } = await importViemAnvil();

  return createAnvil({
    anvilBinary: binary,
    host,
    // 0: the system picks a free port while binding, so two starts never get the same one.
    port: 0,
    chainId,
    // Deriving the ten development accounts would take a third of the start-up time.
    accounts: 0,
    // No automatic mining until the setup is done. `startHeartbeat` says why not `--mixed-mining`.
    noMining: true,
    ...(genesisTime !== undefined && { timestamp: genesisTime }),
    gasLimit,
    blockBaseFeePerGas: initialBaseFee,
    // Without a limit, killed nodes leave their states, eventually gigabytes, in the user's home.
    pruneHistory: statesKept,
    startTimeout: startTimeoutMs + 1_000,
    execArgs: ([file, args, execOptions]) => [
      file,
      [
        ...args,
        ...flags,
        ...(genesisTime === undefined ? [] : ["--max-transactions", "1"]),
        ...forkFlags(fork),
      ],
      // `detached`: Ctrl-C in a terminal reaches the whole process group, but the nodes are still needed while the
      // service shuts down. `buffer: false`: otherwise all output is buffered, and the node is killed at 100 MB.
      {
        ...execOptions,
        argv0: nodeName,
        buffer: false,
        cleanup: false,
        detached: process.platform !== "win32",
        windowsHide: true,
      },
    ],
  });
}

/** The node forks from a server in this process, which already retries and caches. */
function forkFlags(fork: LaunchOptions["fork"]): readonly string[] {
  if (fork === undefined) return [];
  return [
    "--fork-url",
    fork.url,
    "--fork-block-number",
    String(fork.blockNumber),
    "--no-storage-caching",
    "--no-rate-limit",
    "--retries",
    "0",
    "--timeout",
    "600000",
  ];
}

async function importViemAnvil(): Promise<typeof import("./viem-anvil.ts")> {
  try {
    return await import("./viem-anvil.ts");
  } catch (cause) {
    throw new KitError("The package @viem/anvil, which starts the local chains, is not installed", {
      cause,
      hints: ["It is an optional dependency: npm install @viem/anvil @foundry-rs/anvil"],
    });
  }
}

/** Resolves when the process has exited; immediately if it already has. */
export function whenExited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once("exit", () => resolve()));
}

function lines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

// Node's platform and architecture → the suffix of the package with the binary.
const platformPackages: Readonly<Record<string, string>> = {
  "darwin-arm64": "darwin-arm64",
  "darwin-x64": "darwin-amd64",
  "linux-arm64": "linux-arm64",
  "linux-x64": "linux-amd64",
  "win32-x64": "win32-amd64",
};

/**
 * Returns the path of the native anvil binary for this platform. The `anvil` command of `@foundry-rs/anvil` is only a
 * wrapper around it, which costs a Node process per node.
 *
 * @throws {KitError} if there is no binary for the platform, or it is not installed
 */
export function anvilBinary(
  platform: NodeJS.Platform = process.platform,
  architecture: NodeJS.Architecture = process.arch,
): string {
  const suffix = platformPackages[`${platform}-${architecture}`];
  if (suffix === undefined) {
    throw new KitError(`There is no anvil binary for ${platform} on ${architecture}`, {
      hints: [`The local chains run on ${Object.keys(platformPackages).join(", ")}.`],
    });
  }
  const name = `@foundry-rs/anvil-${suffix}`;
  try {
    // Resolved from the package that depends on it: with pnpm and Yarn, transitive dependencies are not visible here.
    const parent = createRequire(createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json"));
    return executable(parent.resolve(`${name}/bin/anvil${platform === "win32" ? ".exe" : ""}`));
  } catch (cause) {
    if (cause instanceof KitError) throw cause;
    throw new KitError("The anvil binary is not installed", {
      cause,
      hints: [
        `It comes with the optional dependency ${name}.`,
        "Install again without --omit=optional (or --no-optional): npm install @foundry-rs/anvil",
      ],
    });
  }
}

/**
 * Returns the path if this process may execute the file.
 *
 * @throws {KitError} otherwise
 */
export function executable(path: string): string {
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch (cause) {
    throw new KitError(`The anvil binary at ${path} is missing or cannot be executed`, {
      cause,
      hints: ["Install it again: npm install @foundry-rs/anvil", `Or allow its execution: chmod +x ${path}`],
    });
  }
}
