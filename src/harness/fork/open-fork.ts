import { isWord, readQuantity } from "../../chain/read-hex.ts";
import type { RpcAnswer, RpcCall } from "../../chain/rpc.ts";
import { KitError } from "../../errors/base.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { type Network, networkNames, networks } from "../../protocol/networks.ts";
import { type AuthorizationSlots, createAuthorizationSlots } from "./authorization-slots.ts";
import { createBlankAccounts } from "./blank-accounts.ts";
import { callKey } from "./call-key.ts";
import type { ForkOrder } from "./fork-options.ts";
import type { RecordedAnswer } from "./recording.ts";
import { createRemoteRpc } from "./remote-rpc.ts";
import { startRpcServer } from "./rpc-server.ts";

export type OpenForkOptions = {
  network: Network;
  order: ForkOrder;
  facilitatorContract: Address;
  /** The accounts that the harness puts in place itself; on the fork nothing of theirs is left. */
  blankAccounts: readonly Address[];
  /** Gives up opening. */
  signal?: AbortSignal | undefined;
};

/** What a node forks from: a server on this machine that asks the network, or answers from a recording. */
export type ForkSource = {
  readonly network: Network;
  readonly kind: ForkOrder["kind"];
  /** What a node takes as the URL to fork from. It holds no key, as arguments of a process are seen by everybody. */
  readonly url: string;
  readonly blockNumber: bigint;
  /** What could not be answered so far: calls without an answer in the recording, or a network gone. */
  failures(): ForkFailures;
  /** Calls the listener at each failure, once for the same call. */
  onFailure(listener: (error: KitError) => void): void;
  /**
   * From a recording only: the token whose authorizations were all signed after it, with the slot of the mapping that
   * keeps their states. Gives where to note what calls name.
   */
  expectAuthorizations(token: Address, mappingSlot: bigint): AuthorizationSlots;
  /** Whether closing writes the recording that was asked for. Not at first: a failure must not replace a good one. */
  keepRecording(keep: boolean): void;
  /** Why a chain could not be put in place on the fork: what could not be asked comes before what came of that. */
  explainStart(error: unknown): unknown;
  /** Ends the server, and writes the recording that was asked for. */
  close(): Promise<void>;
};

/** How often a fork could not answer, and why it last could not. */
export type ForkFailures = { readonly count: number; readonly latest: KitError | undefined };

/** How many different failures are told of: a loop over accounts should not fill a log. */
const mostReports = 100;

/**
 * Opens what a chain is forked from, and looks whether it is the network that it should be.
 *
 * @throws {KitError} when the RPC does not answer, refuses, is of another chain or lacks the block; when the recording
 * cannot be read or is of something else
 */
export async function openFork(options: OpenForkOptions): Promise<ForkSource> {
  const { order } = options;
  return order.kind === "remote" ? openRemote(options, order) : openRecording(options, order);
}

async function openRemote(
  { network, facilitatorContract, blankAccounts, signal }: OpenForkOptions,
  order: Extract<ForkOrder, { kind: "remote" }>,
): Promise<ForkSource> {
  const { name } = network;
  const remote = createRemoteRpc(name, order.url);
  const giveUp = () => remote.close();
  signal?.addEventListener("abort", giveUp);
  try {
    const block = await inspect(network, order.blockNumber, (method, ...params) => {
      signal?.throwIfAborted();
      return remote.ask({ method, params }, 2);
    });
    const recorded = new Map<string, RecordedAnswer>();
    const source = await serve(network, order.kind, block.number, blankAccounts, async (call) => {
      const answer = await remote.ask(call);
      if (answer.error !== undefined && stateReads.includes(call.method)) {
        throw refusedState(name, call, answer.error.message);
      }
      if (answer.error === undefined && order.recordTo !== undefined) {
        recorded.set(callKey(call), { ...call, result: answer.result ?? null });
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
        if (order.recordTo === undefined || !keep) return;
        const { writeRecording } = await import("./recording.ts");
        await writeRecording(order.recordTo, {
          network: name,
          chainId: network.chainId,
          block: { number: Number(block.number), hash: block.hash },
          facilitatorContract,
          answers: [...recorded.values()].map(({ method, params, result }) => ({
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

/** What a node cannot go on without: it would repeat a transaction with every block, and say nothing. */
const stateReads: readonly string[] = [
  "eth_getStorageAt",
  "eth_getCode",
  "eth_getBalance",
  "eth_getTransactionCount",
];

function refusedState(name: string, { method, params }: RpcCall, message: string): KitError {
  return new KitError(
    `The RPC URL that ${name} is forked from refuses ${method} ${JSON.stringify(params)}: ${message}`,
    {
      hints: [
        "Most nodes keep the state of the last 128 blocks or so, which is minutes: take an archive node,",
        "or a recording, which asks the network once: x402-kit fork record --help",
      ],
    },
  );
}

type Ask = (method: string, ...params: readonly unknown[]) => Promise<RpcAnswer>;

/** Whether an RPC is of the network, has the block, and the state of the network's USDC in it. */
async function inspect(
  network: Network,
  blockNumber: bigint | undefined,
  ask: Ask,
): Promise<{ number: bigint; hash: Hex }> {
  const { name, chainId, usdc } = network;
  const who = `The RPC URL that ${name} is forked from`;
  const chain = readQuantity((await ask("eth_chainId")).result);
  if (chain !== BigInt(chainId)) {
    const other = networkNames.find((known) => BigInt(networks[known].chainId) === chain);
    const what =
      chain === undefined ? "names no chain id" : `is of chain ${chain}${other ? ` (${other})` : ""}`;
    throw new KitError(`${who} ${what}; ${name} is chain ${chainId}`, {
      hints: [
        other === undefined ? `Take a URL of ${name}.` : `Fork ${other} from it, or take a URL of ${name}.`,
      ],
    });
  }
  const tag = blockNumber === undefined ? "latest" : `0x${blockNumber.toString(16)}`;
  const { result } = await ask("eth_getBlockByNumber", tag, false);
  const { number, hash }: { number?: unknown; hash?: unknown } =
    typeof result === "object" && result !== null ? result : {};
  const found = readQuantity(number);
  if (found === undefined || !isWord(hash)) {
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
  if (code.result === "0x") {
    throw new KitError(`${who} has no USDC at ${usdc.address} in block ${found}`, {
      hints: [`Is it really a node of ${name}, and the block younger than its USDC?`],
    });
  }
  return { number: found, hash };
}

/** Look-ups of what only the local chain can have: a recording has none of them, and that is the answer. */
const localLookUps: readonly string[] = ["eth_getTransactionByHash", "eth_getTransactionReceipt"];

async function openRecording(
  { network, facilitatorContract, blankAccounts }: OpenForkOptions,
  { path }: Extract<ForkOrder, { kind: "recording" }>,
): Promise<ForkSource> {
  const { readRecording, IncompleteRecording } = await import("./recording.ts");
  const recording = await readRecording(path, { network, facilitatorContract });
  const { block, answers } = recording;
  const recorded = new Map(answers.map((answer) => [callKey(answer), answer.result]));
  const source = await serve(network, "recording", BigInt(block.number), blankAccounts, async (call) => {
    const key = callKey(call);
    if (recorded.has(key)) return { result: recorded.get(key) };
    if (localLookUps.includes(call.method)) return { result: null };
    throw notRecorded(network, path, call);
  });
  return {
    ...source,
    explainStart(error) {
      const { latest } = source.failures();
      return latest === undefined ? error : new IncompleteRecording(path, recording, latest);
    },
  };
}

function notRecorded({ name }: Network, path: string, { method, params }: RpcCall): KitError {
  return new KitError(
    `The recording ${path} of ${name} has no answer to ${method} ${JSON.stringify(params)}`,
    {
      hints: [
        "What a test reads of the chain must be recorded: run it once with",
        `  fork: { ${quoteIfNeeded(name)}: { url: "https://…", recordTo: ${JSON.stringify(path)} } }`,
      ],
    },
  );
}

const quoteIfNeeded = (name: string) => (name.includes("-") ? `"${name}"` : name);

/** Starts the server that a node forks from. What `answer` throws is a failure. */
async function serve(
  network: Network,
  kind: ForkOrder["kind"],
  blockNumber: bigint,
  blankAccounts: readonly Address[],
  answer: (call: RpcCall) => Promise<RpcAnswer>,
): Promise<ForkSource> {
  const answerBlank = createBlankAccounts(blankAccounts);
  const authorizations = new Map<string, AuthorizationSlots>();
  const reported = new Map<string, KitError>();
  let failures: ForkFailures = { count: 0, latest: undefined };
  const listeners: ((error: KitError) => void)[] = [];

  function report(call: RpcCall, error: unknown): void {
    if (!(error instanceof KitError)) return;
    failures = { count: failures.count + 1, latest: error };
    const key = callKey(call);
    if (reported.has(key) || reported.size >= mostReports) return;
    reported.set(key, error);
    for (const listener of listeners) listener(error);
  }

  async function respond(call: RpcCall): Promise<RpcAnswer> {
    // Only some nodes know it, and anvil asks in the usual ways too.
    if (call.method === "eth_getAccountInfo") return { error: unknownMethod };
    const blank = answerBlank(call);
    if (blank !== undefined) return blank;
    try {
      return await answer(call);
    } catch (error) {
      if (isUnusedAuthorization(call, authorizations)) return { result: `0x${"0".repeat(64)}` };
      report(call, error);
      throw error;
    }
  }

  const server = await startRpcServer(respond);
  return {
    network,
    kind,
    url: server.url,
    blockNumber,
    failures: () => failures,
    onFailure(listener) {
      for (const failure of reported.values()) listener(failure);
      listeners.push(listener);
    },
    expectAuthorizations(token, mappingSlot) {
      const slots = createAuthorizationSlots(mappingSlot);
      authorizations.set(token.toLowerCase(), slots);
      return slots;
    },
    keepRecording() {},
    explainStart: (error) => failures.latest ?? error,
    close: () => server.close(),
  };
}

const unknownMethod = { code: -32_601, message: "the method is not known", data: undefined };

function isUnusedAuthorization(
  { method, params: [token, slot] }: RpcCall,
  authorizations: ReadonlyMap<string, AuthorizationSlots>,
): boolean {
  if (method !== "eth_getStorageAt" || typeof token !== "string") return false;
  const key = readQuantity(slot);
  return key !== undefined && authorizations.get(token.toLowerCase())?.has(key) === true;
}
