import type { RpcAnswer, RpcCall } from "../../chain/rpc/rpc.ts";
import { type Hex, isBytes, isBytes32, readQuantity } from "../../protocol/hex.ts";
import { builtInNetworks, type Network } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { self } from "../../util/self-command.ts";
import type { ForkSource, OpenForkOptions, RemoteForkSpec } from "./fork-options.ts";
import { callKey, startForkServer } from "./fork-server.ts";
import type { RecordedAnswer } from "./recording.ts";
import { createRemoteRpc } from "./remote-rpc.ts";

/**
 * Opens a fork of a network that is asked over its RPC.
 *
 * @throws {KitError} when the RPC does not answer, refuses, is of another chain, or lacks the block
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
    // State at a block never changes, and a node asks for it again after every reset.
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

/** What a node cannot go on without: it would repeat a transaction with every block, and say nothing. */
const stateReads: readonly string[] = [
  "eth_getStorageAt",
  "eth_getCode",
  "eth_getBalance",
  "eth_getTransactionCount",
];

/** At a block with a number: what "latest" is may change. */
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

type Ask = (method: string, ...params: readonly unknown[]) => Promise<RpcAnswer>;

/**
 * Looks whether an RPC is of a network, has a block, and the state of the network's USDC in it. Gives that block.
 *
 * @param blockNumber the newest by default
 * @throws {KitError} when it does not
 */
export async function inspectRemote(
  network: Network,
  blockNumber: bigint | undefined,
  ask: Ask,
): Promise<{ number: bigint; hash: Hex }> {
  const { name, chainId, usdc } = network;
  const who = `The RPC URL that ${name} is forked from`;
  const expect = async (...call: Parameters<Ask>): Promise<unknown> => {
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
