import type { RpcCall } from "../../chain/rpc/rpc.ts";
import { readQuantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { callKey } from "./call-key.ts";
import type { RemoteForkSpec } from "./fork-options.ts";
import { startForkServer } from "./fork-server.ts";
import type { ForkSource, OpenForkOptions } from "./fork-source.ts";
import { inspectRemote } from "./inspect-remote.ts";
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
