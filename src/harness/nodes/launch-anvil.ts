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
  /** The name of the node in messages: `base`. */
  name: string;
  chainId: number;
  /** Ends the node together with this process. */
  watchdog: Watchdog;
  /** Gives up the start; without effect once the node runs. */
  signal?: AbortSignal | undefined;
  /** Path of the anvil binary; the one of this platform's package by default. */
  binary?: string | undefined;
  /**
   * Unix seconds of the first block, where the chain has a clock of its own: then each block is one second after its
   * parent and holds one transaction at most. Otherwise chain time is the time of this machine.
   */
  genesisTime?: number | undefined;
  /** The address that it listens on, at a free port; 127.0.0.1 by default. */
  host?: string | undefined;
  startTimeoutMs?: number | undefined;
  /** Called when the process runs, while it comes to listen. */
  onSpawn?: (() => void) | undefined;
  /** Forks a chain, instead of starting an empty one. The URL shows in the arguments of the process. */
  fork?: { url: string; blockNumber: bigint } | undefined;
};

/** Flags that the typed options of `@viem/anvil` do not know. */
const flags = [
  // A fixed one, so that an upgrade of anvil does not change the rules.
  "--hardfork",
  "prague",
  // Otherwise every web page may call it.
  "--no-cors",
];

/** Room for some 3,000 single settles in a block, ten times anvil's default: a relayer under load fills that. */
const gasLimit = 300_000_000;

/** Wei per gas, as usual on layer 2; anvil lowers it from here while blocks are empty. */
export const initialBaseFee = 10_000_000;

/** States kept in memory: enough for reorgs, and for calls to a head that a block has just replaced. */
const statesKept = 64;

/** Carries the identity of a start into the `child_process` channel, whose messages come in its async context. */
const startContext = new AsyncLocalStorage<object>();

/**
 * Starts an anvil process through `@viem/anvil`, which reads from its output when and where it listens. Nothing else
 * of that package is used, because it does not notice a node that dies, turns a binary it cannot start into an
 * unhandled rejection, collects the whole output in memory, and keeps a timer after stopping.
 *
 * @throws {KitError} when it does not come to listen; no process is left then
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
      if (started.pid !== undefined) return;
      spawnError = error;
      started.emit("exit", null, null);
    });
    // The message comes from the constructor: by the next microtask the process is spawned, and its promise is on it.
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
    // The rest of the line may come in a chunk of its own.
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

/** An anvil that is not started yet. */
async function describeAnvil(binary: string, options: LaunchOptions) {
  const { chainId, genesisTime, fork } = options;
  const { startTimeoutMs = usualStartTimeoutMs, host = "127.0.0.1" } = options;
  const { createAnvil } = await importViemAnvil();

  return createAnvil({
    anvilBinary: binary,
    host,
    // 0: the system gives a free port at the moment of binding, so no two starts can be given the same one.
    port: 0,
    chainId,
    // Deriving the ten development accounts would take a third of the start-up time.
    accounts: 0,
    // Nothing is mined by itself until everything is in place. See `startHeartbeat` for why not `--mixed-mining`.
    noMining: true,
    ...(genesisTime !== undefined && { timestamp: genesisTime }),
    gasLimit,
    blockBaseFeePerGas: initialBaseFee,
    // Without a number a killed node leaves its states, gigabytes in the end, in the user's home.
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
      // `detached`: Ctrl-C in a terminal reaches the whole process group, and the nodes are still needed while the
      // service finishes. `buffer: false`: otherwise all output is kept, and the node killed at 100 MB.
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

/** The node asks a server of this process, which retries and remembers, so that the node need not. */
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

/** Resolves when the process has ended, at once when it has already. */
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

// Node's names of platform and architecture → the suffix of the package that holds the binary for them.
const platformPackages: Readonly<Record<string, string>> = {
  "darwin-arm64": "darwin-arm64",
  "darwin-x64": "darwin-amd64",
  "linux-arm64": "linux-arm64",
  "linux-x64": "linux-amd64",
  "win32-x64": "win32-amd64",
};

/**
 * The path of the native anvil binary for this platform. The `anvil` command of `@foundry-rs/anvil` is a wrapper
 * that keeps a Node process per node; this is the binary behind it.
 *
 * @throws {KitError} when there is no binary for the platform, or it is not installed
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
    // From the package that depends on it: under pnpm and Yarn ours cannot see its dependencies.
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

/** The path itself, when it is a file that this process may execute. */
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
