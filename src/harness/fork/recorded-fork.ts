import type { RpcCall } from "../../chain/rpc/rpc.ts";
import type { Network } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { ForkSource, OpenForkOptions, RecordedForkSpec } from "./fork-options.ts";
import { callKey, startForkServer } from "./fork-server.ts";
import { IncompleteRecording, readRecording } from "./recording.ts";

/** Look-ups of what only the local chain can have: a recording has none of them, and that is the answer. */
const localLookUps: readonly string[] = ["eth_getTransactionByHash", "eth_getTransactionReceipt"];

/**
 * Opens a fork whose network is not asked any more.
 *
 * @throws {KitError} when the recording cannot be read, or is of something else
 */
export async function openRecordedFork(
  { network, facilitatorContract, blankAccounts }: OpenForkOptions,
  { path }: RecordedForkSpec,
): Promise<ForkSource> {
  const recording = await readRecording(path, { network, facilitatorContract });
  const { block, answers } = recording;
  const recorded = new Map(answers.map((answer) => [callKey(answer), answer.result]));
  const server = { network, kind: "recording", blockNumber: BigInt(block.number), blankAccounts } as const;
  const source = await startForkServer(server, async (call) => {
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
