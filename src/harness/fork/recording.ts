import { randomUUID } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { z } from "zod";
import type { RpcCall } from "../../chain/rpc/rpc.ts";
import { type Address, sameAddress } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import { address, bytes32 } from "../../protocol/primitives.ts";
import { KitError } from "../../util/errors.ts";
import { parseJson } from "../../util/json.ts";
import { kitVersion, self } from "../../util/self-command.ts";
import { firstPlace } from "../../util/text.ts";
import { unpack } from "../../util/unpack.ts";
import type { ForkSource, OpenForkOptions, RecordedForkSpec } from "./fork-options.ts";
import { callKey, startForkServer } from "./fork-server.ts";

/** The format version that this kit reads and writes. After raising it, older recordings must be made again. */
const version = 1;

const header = z.looseObject({ format: z.literal("x402-kit fork recording"), version: z.number() });

const schema = z.strictObject({
  ...header.shape,
  version: z.literal(version),
  /** The kit release that wrote it, for humans. */
  kit: z.string(),
  network: z.string(),
  chainId: z.int(),
  block: z.strictObject({ number: z.int().nonnegative(), hash: bytes32 }),
  /** The facilitator contract's address: the recorded token storage includes its balance. */
  facilitatorContract: address,
  answers: z.array(z.strictObject({ method: z.string(), params: z.array(z.unknown()), result: z.unknown() })),
});

/** A fork's requests to its network, with the answers. */
export type Recording = Omit<z.infer<typeof schema>, "format" | "version" | "kit">;

/** The recording lacks data needed to start, usually because another release wrote it. */
export class IncompleteRecording extends KitError {
  override readonly name = "IncompleteRecording";

  constructor(path: string, { network, kit }: { network: string; kit: string }, cause: unknown) {
    const releases = kit === kitVersion() ? [] : [`Release ${kit} has written it; this is ${kitVersion()}.`];
    super(`The recording ${path} lacks what the harness needs to start`, {
      cause,
      hints: [...releases, again(network)],
    });
  }
}

export type RecordedAnswer = RpcCall & { readonly result: unknown };

/** The hint that says how to make the recording again. */
const again = (network: string) =>
  `Record it again: ${self} fork record --network ${network} --out FILE, with the RPC URL in the environment.`;

/**
 * Reads a recording of a network.
 *
 * @throws {KitError} if the file is missing or damaged, or has another version, network or facilitator contract
 */
export async function readRecording(
  path: string,
  expected: { network: Network; facilitatorContract: Address },
): Promise<Recording & { kit: string }> {
  const { network, facilitatorContract } = expected;
  const hints = [again(network.name)];
  const text = await readText(path, hints);
  const parsed = parseJson(text);
  const head = header.safeParse(parsed);
  if (!head.success) {
    throw new KitError(`${path} is not a recording of a fork, or is damaged`, { hints });
  }
  if (head.data.version !== version) {
    throw new KitError(
      `The recording ${path} has version ${head.data.version}; this release reads version ${version}`,
      { hints },
    );
  }
  const read = schema.safeParse(parsed);
  if (!read.success) {
    throw new KitError(`The recording ${path} is damaged at ${firstPlace(read.error)}`, { hints });
  }
  const recording = read.data;
  if (recording.chainId !== network.chainId) {
    throw new KitError(
      `The recording ${path} is of ${recording.network} (chain ${recording.chainId}), not of ${network.name} (chain ${network.chainId})`,
      { hints },
    );
  }
  if (!sameAddress(recording.facilitatorContract, facilitatorContract)) {
    throw new KitError(
      `The recording ${path} was made with the facilitator contract at ${recording.facilitatorContract}; here it is at ${facilitatorContract}`,
      { hints: ["Configure the address that it was recorded with.", ...hints] },
    );
  }
  return recording;
}

/**
 * Writes a recording, gzipped if the path ends with `.gz`. Each answer is one line, in sorted order, so that two
 * recordings can be diffed.
 *
 * @throws {KitError} if it cannot be written; an existing file is then unchanged
 */
export async function writeRecording(path: string, recording: Recording): Promise<void> {
  const { answers, ...rest } = recording;
  const head = { format: "x402-kit fork recording", version, kit: kitVersion(), ...rest };
  const lines = answers
    .map((answer) => ({ key: callKey(answer), line: JSON.stringify(answer) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ line }) => `    ${line}`);
  const text = `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "answers": [\n${lines.join(",\n")}\n  ]\n}\n`;
  // A unique name: several harnesses may record to the same path.
  const partial = `${path}.${randomUUID()}.part`;
  try {
    await writeFile(partial, path.endsWith(".gz") ? await promisify(gzip)(text) : text);
    await rename(partial, path);
  } catch (cause) {
    await rm(partial, { force: true }).catch(() => {});
    throw new KitError(`The recording ${path} cannot be written`, {
      cause,
      hints: ["Its folder must be there, with room, and may be written to."],
    });
  }
}

async function readText(path: string, hints: readonly string[]): Promise<string> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    throw new KitError(`The recording ${path} cannot be read`, { cause, hints });
  }
  // Check gzip's magic bytes; the file name may not say that it is compressed.
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes.toString();
  try {
    return unpack(bytes, { path, bytes: bytes.length }).toString();
  } catch (cause) {
    if (cause instanceof KitError) throw cause;
    throw new KitError(`The recording ${path} is damaged`, { cause, hints });
  }
}

/** Lookups of what only the local chain can have. A recording never has them, so the answer is null. */
const localLookUps: readonly string[] = ["eth_getTransactionByHash", "eth_getTransactionReceipt"];

/**
 * Opens a fork that is served from a recording alone, without the network.
 *
 * @throws {KitError} if the recording cannot be read, or does not match the network or contract
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
