import { setTimeout as sleep } from "node:timers/promises";
import type { AskNode } from "../../chain/rpc/calls.ts";
import { createRedactor, type RpcAnswer, type RpcCall, readBatch, writeBatch } from "../../chain/rpc/rpc.ts";
import { type Hex, isBytes, isBytes32, readQuantity } from "../../protocol/hex.ts";
import { builtInNetworks, type Network } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { createKeepAlivePost, HttpFailure } from "../../util/http-client.ts";
import { membersOf } from "../../util/json.ts";
import { self } from "../../util/self-command.ts";
import type { ForkSource, OpenForkOptions, RemoteForkSpec } from "./fork-options.ts";
import { callKey, startForkServer } from "./fork-server.ts";
import type { RecordedAnswer } from "./recording.ts";

/**
 * Opens a fork that reads the network over RPC.
 *
 * @throws {KitError} if the RPC does not answer, refuses, serves another chain, or lacks the block
 */
export async function openRemoteFork(
  { network, facilitatorContract, blankAccounts, signal }: OpenForkOptions,
  spec: RemoteForkSpec,
): Promise<ForkSource> {
  const { name } = network;
  const remote = createRemoteRpc(name, spec.url);
  const giveUp = () => remote.close();
  signal?.addEventListener("abort", giveUp);
  try {
    const block = await inspectRemote(network, spec.blockNumber, (method, ...params) => {
      signal?.throwIfAborted();
      return remote.ask({ method, params }, 2);
    });
    // State at a fixed block never changes, and a node asks for it again after every reset.
    const answered = new Map<string, RecordedAnswer>();
    const server = { network, kind: spec.kind, blockNumber: block.number, blankAccounts };
    const source = await startForkServer(server, async (call) => {
      const key = callKey(call);
      const known = isStateRead(call) ? answered.get(key) : undefined;
      if (known !== undefined) return { result: known.result };
      const answer = await remote.ask(call);
      if (answer.error !== undefined && isStateRead(call)) {
        throw refusedState(name, call, answer.error.message);
      }
      if (answer.error === undefined && (isStateRead(call) || spec.recordTo !== undefined)) {
        answered.set(key, { ...call, result: answer.result ?? null });
      }
      return answer;
    });
    let keep = false;
    return {
      ...source,
      keepRecording(wanted) {
        keep = wanted;
      },
      async close() {
        remote.close();
        await source.close();
        if (spec.recordTo === undefined || !keep) return;
        const { writeRecording } = await import("./recording.ts");
        await writeRecording(spec.recordTo, {
          network: name,
          chainId: network.chainId,
          block: { number: Number(block.number), hash: block.hash },
          facilitatorContract,
          answers: [...answered.values()].map(({ method, params, result }) => ({
            method,
            params: [...params],
            result,
          })),
        });
      },
    };
  } catch (error) {
    remote.close();
    throw signal?.aborted === true ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
}

/** Calls that must not fail: without their answers, a node would silently retry a transaction with every block. */
const stateReads: readonly string[] = [
  "eth_getStorageAt",
  "eth_getCode",
  "eth_getBalance",
  "eth_getTransactionCount",
];

/** True only for reads at a numbered block: "latest" may change. */
const isStateRead = ({ method, params }: RpcCall) =>
  stateReads.includes(method) && readQuantity(params.at(-1)) !== undefined;

function refusedState(name: string, { method, params }: RpcCall, message: string): KitError {
  return new KitError(
    `The RPC URL that ${name} is forked from refuses ${method} ${JSON.stringify(params)}: ${message}`,
    {
      hints: [
        "Most nodes keep the state of the last 128 blocks or so, which is minutes: take an archive node,",
        `or a recording, which asks the network once: ${self} fork record --help`,
      ],
    },
  );
}

/**
 * Checks that an RPC serves the network and has a block with the state of the network's USDC. Returns that block.
 *
 * @param blockNumber the newest by default
 * @throws {KitError} if any of these checks fails
 */
export async function inspectRemote(
  network: Network,
  blockNumber: bigint | undefined,
  ask: AskNode,
): Promise<{ number: bigint; hash: Hex }> {
  const { name, chainId, usdc } = network;
  const who = `The RPC URL that ${name} is forked from`;
  const expect = async (...call: Parameters<AskNode>): Promise<unknown> => {
    const { result, error } = await ask(...call);
    if (error === undefined) return result;
    throw new KitError(`${who} refuses ${call[0]}: ${error.message}`, {
      hints: [`Is its key allowed to use ${name}?`],
    });
  };

  const chain = readQuantity(await expect("eth_chainId"));
  if (chain !== BigInt(chainId)) {
    const other = chain === undefined ? undefined : builtInNetworks.ofChain(Number(chain))?.name;
    const what =
      chain === undefined ? "names no chain id" : `is of chain ${chain}${other ? ` (${other})` : ""}`;
    throw new KitError(`${who} ${what}; ${name} is chain ${chainId}`, {
      hints: [
        other === undefined ? `Take a URL of ${name}.` : `Fork ${other} from it, or take a URL of ${name}.`,
      ],
    });
  }

  const tag = blockNumber === undefined ? "latest" : `0x${blockNumber.toString(16)}`;
  const { number, hash } = membersOf(await expect("eth_getBlockByNumber", tag, false));
  const found = readQuantity(number);
  if (found === undefined || !isBytes32(hash)) {
    throw new KitError(`${who} has no block ${blockNumber ?? "yet"}`, {
      hints: ["Leave the block number out to fork from the newest block."],
    });
  }

  const code = await ask("eth_getCode", usdc.address, `0x${found.toString(16)}`);
  if (code.error !== undefined) {
    throw new KitError(`${who} has no state of block ${found}: ${code.error.message}`, {
      hints: ["Old blocks need an archive node. Leave the block number out to fork from the newest block."],
    });
  }
  if (!isBytes(code.result) || code.result === "0x") {
    throw new KitError(`${who} has no USDC at ${usdc.address} in block ${found}`, {
      hints: [`Is it really a node of ${name}, and the block younger than its USDC?`],
    });
  }
  return { number: found, hash };
}

/** A public or paid node of the forked network. It may be slow and may rate-limit. */
export type RemoteRpc = {
  /**
   * Returns the answer to one call, which may be a JSON-RPC error. Temporary failures are retried up to `repetitions`
   * times, with growing pauses.
   *
   * @throws {KitError} if there is still no answer after the retries; its texts hold no part of the URL
   */
  ask(call: RpcCall, repetitions?: number): Promise<RpcAnswer>;
  close(): void;
};

/** Public nodes take seconds for old state. */
const timeoutMs = 30_000;

/** Maximum concurrent calls. Public nodes refuse more. */
const atOnce = 16;

/** Temporary failures: too many requests, and errors of the servers in front of a node. */
const passingStatuses: readonly (number | undefined)[] = [408, 425, 429, 500, 502, 503, 504];

/** The longest pause before a call is repeated. */
const longestPauseMs = 10_000;

/** For this long after a call ran out of retries, further calls are not retried. */
const impatientMs = 30_000;

/**
 * Creates a client for a node whose URL may hold a key: no part of the URL gets into an error.
 *
 * @param name the network's name in messages, such as `base`
 */
export function createRemoteRpc(name: string, url: URL): RemoteRpc {
  const post = createKeepAlivePost(url, { timeoutMs, maxResponseBytes: 64 * 1024 * 1024 });
  const redact = createRedactor([url]);
  const closing = new AbortController();
  const limit = createLimit(atOnce);
  let gaveUpAt = Number.NEGATIVE_INFINITY;

  async function attempt(call: RpcCall): Promise<RpcAnswer> {
    const { body, firstId } = writeBatch([call]);
    // Sent as a single call: some nodes accept no batches.
    const text = await post(body.slice(1, -1));
    const answer = readBatch(`[${text}]`, firstId, [call]).get(call);
    if (answer?.error === undefined) return answer ?? { result: null };
    const { code, message, data } = answer.error;
    return { error: { code, message: redact(message), data } };
  }

  async function ask(call: RpcCall, wanted = 4): Promise<RpcAnswer> {
    const repetitions = performance.now() - gaveUpAt < impatientMs ? 0 : wanted;
    for (let failures = 0; ; failures++) {
      try {
        const answer = await limit(() => attempt(call));
        gaveUpAt = Number.NEGATIVE_INFINITY;
        if (answer.error === undefined || failures >= repetitions || !mayPass(answer.error.code))
          return answer;
        await pause(failures, undefined);
      } catch (error) {
        if (closing.signal.aborted) throw error;
        const most = isTimeout(error) ? Math.min(repetitions, 1) : repetitions;
        if (failures >= most || !isPassing(error)) {
          gaveUpAt = performance.now();
          throw explain(name, error);
        }
        await pause(failures, error instanceof HttpFailure ? error.retryAfterMs : undefined);
      }
    }
  }

  const pause = (failures: number, asked = 0) => {
    const ms = Math.max(asked, 250 * 2 ** failures);
    return sleep(Math.min(ms, longestPauseMs), undefined, { signal: closing.signal });
  };

  return {
    ask,
    close() {
      closing.abort();
      post.close();
    },
  };
}

/**
 * Codes -32000 to -32099 are node-specific. Usually the node has not seen the block yet, because another node behind the
 * same URL reported it, or the rate limit is exceeded. Nothing more reliable separates temporary from permanent errors.
 */
function mayPass(code: number | undefined): boolean {
  return code !== undefined && code <= -32_000 && code >= -32_099;
}

const isTimeout = (error: unknown) => error instanceof HttpFailure && error.kind === "timeout";

function isPassing(error: unknown): boolean {
  if (!(error instanceof HttpFailure)) return false;
  return error.kind === "status" ? passingStatuses.includes(error.status) : error.kind !== "too_large";
}

function explain(name: string, cause: unknown): KitError {
  const who = `The RPC URL that ${name} is forked from`;
  if (!(cause instanceof HttpFailure)) {
    return new KitError(`${who} does not answer with JSON-RPC`, {
      cause,
      hints: ["Take the URL of a node's JSON-RPC, not that of an explorer or of a provider's page."],
    });
  }
  if (cause.status === 401 || cause.status === 403) {
    return new KitError(`${who} refuses access (HTTP ${cause.status})`, {
      cause,
      hints: [`Its key is missing or wrong, or is not allowed to use ${name}.`],
    });
  }
  if (cause.status === 429) {
    return new KitError(`${who} gets too many requests (HTTP 429)`, {
      cause,
      hints: [
        "Wait, or take a URL with a key of your own, which may ask more.",
        `A recording asks the network once: ${self} fork record --help`,
      ],
    });
  }
  return new KitError(`${who} gives no answer`, {
    cause,
    hints: [
      "Check the URL and this machine's network.",
      `Without a network use a recording (${self} fork record --help), or no fork.`,
    ],
  });
}

/** Runs at most `most` tasks at once; the others wait in order. */
function createLimit(most: number): <T>(task: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (task) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
