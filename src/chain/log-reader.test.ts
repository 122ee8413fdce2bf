import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  authorizationUsed,
  payment,
  receiptOf,
  stranger,
  token,
  transfer,
  word,
} from "../../test/support/logs.ts";
import { type ReceivedCall, type StubNode, sendJson, startStubNode } from "../../test/support/stub-node.ts";
import type { Hex } from "../protocol/hex.ts";
import { UndeterminedError } from "../util/errors.ts";
import { createChainReader } from "./chain-reader.ts";
import { createLogReader, type LogReader, type MinedLog } from "./log-reader.ts";
import { createHttpRpc } from "./rpc/http-rpc.ts";
import type { Rpc } from "./rpc/rpc.ts";

/** A chain of 10,000 blocks, with a log in some of them. */
const head = { number: "0x2710", timestamp: "0x1", baseFeePerGas: "0x1" };
const filter = { address: token, topics: [authorizationUsed(payment).topics.slice(0, 1), null] };

type Range = { fromBlock: Hex; toBlock: Hex };
type Answer = { result?: unknown; error?: unknown };

let node: StubNode;
let rpc: Rpc;
let read: LogReader;
/** The ranges that were asked for. */
let ranges: [number, number][];

beforeEach(async () => {
  ranges = [];
  node = await startStubNode(() => {});
  rpc = createHttpRpc({ network: "base", chainId: 8453, urls: [node.url], retryDelayMs: 1 });
  read = createLogReader({ rpc, reader: createChainReader(rpc, "base") });
});
afterEach(async () => {
  rpc.close();
  await node.stop();
});

function answer(onLogs: (from: number, to: number) => Answer, newest: unknown = head): void {
  const answerTo = ({ method, params }: ReceivedCall): Answer => {
    if (method !== "eth_getLogs") return { result: newest };
    const { fromBlock, toBlock } = params[0] as Range;
    const [from, to] = [Number(fromBlock), Number(toBlock)];
    ranges.push([from, to]);
    return onLogs(from, to);
  };
  node.behave((calls, response) =>
    sendJson(
      response,
      calls.map((call) => ({ id: call.id, ...answerTo(call) })),
    ),
  );
}

const [log] = receiptOf([authorizationUsed(payment)]).logs;
const logAt = (block: number) => ({
  ...log,
  logIndex: "0x7",
  transactionHash: word("1"),
  blockHash: word("2"),
  blockNumber: `0x${block.toString(16)}`,
});
const logsAt = (blocks: number[]) => (from: number, to: number) => ({
  result: blocks.filter((block) => from <= block && block <= to).map(logAt),
});

async function readAll(from: bigint, to: bigint): Promise<bigint[]> {
  const all: MinedLog[] = [];
  for await (const logs of read([filter], from, to)) all.push(...logs);
  return all.map(({ blockNumber }) => blockNumber);
}

async function failureOf(promise: Promise<unknown>): Promise<string | undefined> {
  const error = await promise.catch((error: unknown) => error);
  if (!(error instanceof UndeterminedError)) throw new Error("it did not fail as it should");
  return error.hints[0];
}

test("a small range is one question, which asks for the head too", async () => {
  answer(logsAt([5, 100, 101]));
  expect(await readAll(5n, 100n)).toEqual([5n, 100n]);
  expect(ranges).toEqual([[5, 100]]);
  expect(node.batches.map((batch) => batch.map(({ method }) => method))).toEqual([
    ["eth_getBlockByNumber", "eth_getLogs"],
  ]);
  expect(node.batches[0]?.[1]?.params).toEqual([
    { address: token, topics: [[expect.any(String)], null], fromBlock: "0x5", toBlock: "0x64" },
  ]);
});

test("a large range is asked for in parts, lowest first, without a gap", async () => {
  answer(logsAt([0, 1_999, 2_000, 4_500]));
  expect(await readAll(0n, 4_500n)).toEqual([0n, 1_999n, 2_000n, 4_500n]);
  expect(ranges).toEqual([
    [0, 1_999],
    [2_000, 3_999],
    [4_000, 4_500],
  ]);
});

test("nothing more is asked when the caller has seen enough", async () => {
  answer(logsAt([3]));
  for await (const logs of read([filter], 0n, 9_999n)) if (logs.length > 0) break;
  expect(ranges).toEqual([[0, 1_999]]);
});

test.each([5, 10, 800])(
  "a provider that takes %i blocks is asked for as many, or half as many",
  async (limit) => {
    answer((from, to) =>
      to - from < limit
        ? logsAt([1, 2_345, 4_000])(from, to)
        : { error: { code: -32005, message: "query exceeds max block range" } },
    );
    expect(await readAll(0n, 4_000n)).toEqual([1n, 2_345n, 4_000n]);
    ranges.length = 0;
    await readAll(0n, BigInt(limit));
    expect(ranges.length).toBeLessThanOrEqual(6);
  },
);

test("a range that holds too much is narrowed, and later ones are as wide as before again", async () => {
  answer((from, to) =>
    from <= 700 && 700 <= to && to - from > 30
      ? { error: { code: -32602, message: "10K logs" } }
      : { result: [] },
  );
  await readAll(0n, 9_999n);
  const narrow = ranges.length;
  for (let time = 0; time < 10; time++) await readAll(2_000n, 9_999n);
  ranges.length = 0;
  await readAll(2_000n, 9_999n);
  expect([narrow > 20, ranges.length]).toEqual([true, 4]);
});

describe("no answer is believed", () => {
  test("of a node that has not seen the last block", async () => {
    answer(() => ({ result: [] }));
    expect(await failureOf(readAll(9_000n, 10_001n))).toBe(
      "An RPC endpoint of base: it has not seen block 10001 yet",
    );
  });

  test("of a node that does not know its head", async () => {
    answer(() => ({ result: [] }), null);
    await failureOf(readAll(1n, 2n));
  });

  test("of a node that refuses even a single block", async () => {
    answer(() => ({ error: { code: -32601, message: "no such method" } }));
    expect(await failureOf(readAll(1n, 9_999n))).toBe(
      "An RPC endpoint of base: logs of block 1: JSON-RPC error -32601: no such method",
    );
    expect(ranges.length).toBeLessThan(30);
  });

  test.each<[string, unknown]>([
    ["null", null],
    ["an object", {}],
    ["null in the place of a log", [null]],
    ["a log without a transaction", [{ ...logAt(5), transactionHash: undefined }]],
    ["a log without a block", [{ ...logAt(5), blockHash: null, blockNumber: null }]],
    ["a log that was removed", [{ ...logAt(5), removed: true }]],
    ["a log without topics", [{ ...logAt(5), topics: undefined }]],
    ["a log of another contract", [{ ...logAt(5), address: stranger }]],
    ["a log of another event", [{ ...logAt(5), topics: transfer(payment).topics }]],
    ["a log with too few topics", [{ ...logAt(5), topics: [] }]],
    ["a log of a block before the range", [logAt(4)]],
    ["a log of a block behind the range", [logAt(11)]],
  ])("with %s", async (_, result) => {
    answer(() => ({ result }));
    await failureOf(readAll(5n, 10n));
  });

  test("of no endpoint at all", async () => {
    node.behave((_, response) => void response.destroy());
    await failureOf(readAll(5n, 10n));
  });
});

test("another endpoint is asked before fewer blocks are", async () => {
  const other = await startStubNode((calls, response) =>
    sendJson(
      response,
      calls.map(({ id, method }) => {
        if (method === "eth_chainId") return { id, result: "0x2105" };
        return { id, result: method === "eth_getLogs" ? [] : head };
      }),
    ),
  );
  const both = createHttpRpc({ network: "base", chainId: 8453, urls: [node.url, other.url] });
  node.behave((calls, response) =>
    sendJson(
      response,
      calls.map(({ id, method }) => {
        if (method === "eth_chainId") return { id, result: "0x2105" };
        return method === "eth_getLogs" ? { id, error: { code: -32601 } } : { id, result: head };
      }),
    ),
  );
  read = createLogReader({ rpc: both, reader: createChainReader(both, "base") });
  expect(await readAll(0n, 1_999n)).toEqual([]);
  const asked = other.batches.flat().filter(({ method }) => method === "eth_getLogs");
  expect(asked).toHaveLength(1);
  both.close();
  await other.stop();
});
