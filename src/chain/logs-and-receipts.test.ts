import fc from "fast-check";
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
import { type Hex, toHex } from "../protocol/hex.ts";
import { UndeterminedError } from "../util/errors.ts";
import { createChainReader } from "./chain-reader.ts";
import {
  createLogReader,
  createReceiptReader,
  type LogReader,
  type MinedLog,
  readReceipt,
} from "./logs-and-receipts.ts";
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

const hash = word("a");

describe("a receipt", () => {
  const blockHash = word("b");
  const receipt = (status: "0x0" | "0x1", transactionHash = hash) => ({
    transactionHash,
    status,
    blockNumber: "0x7",
    blockHash,
    logs: [],
  });
  const transaction = { hash, blockHash, blockNumber: "0x7" };

  /** An endpoint: what it says of the receipt, and of the transaction. */
  type Says = { receipt: unknown; transaction?: unknown };

  /** Reads from endpoints that take turns as answers prove to be of no use; gives what is read and how often was asked. */
  async function read(...endpoints: Says[]) {
    let receiptsAsked = 0;
    const readReceipts = createReceiptReader({
      async ask(calls, { attempt = 0 } = {}) {
        const says = endpoints[attempt % endpoints.length];
        const endpoint = `${(attempt % endpoints.length) + 1}`;
        return calls.map(({ method }) => {
          if (method === "eth_getTransactionByHash") return { result: says?.transaction ?? null, endpoint };
          receiptsAsked++;
          return { result: says?.receipt, endpoint };
        });
      },
    });
    const [found] = await readReceipts([hash]);
    return { found, receiptsAsked };
  }

  const believed = (succeeded: boolean) => expect.objectContaining({ hash, succeeded, blockNumber: 7n });

  test("of success is read from the first endpoint, and none that there is not yet is looked for elsewhere", async () => {
    expect(await read({ receipt: receipt("0x1") })).toEqual({ found: believed(true), receiptsAsked: 1 });
    expect(await read({ receipt: null }, { receipt: receipt("0x1") })).toEqual({
      found: null,
      receiptsAsked: 1,
    });
  });

  test.each([
    ["of another transaction", receipt("0x1", word("c"))],
    ["that is malformed", { transactionHash: hash }],
    ["that is none", "0x"],
  ])("%s is read from another endpoint, or is not there", async (_, useless) => {
    expect(await read({ receipt: useless }, { receipt: receipt("0x1") })).toEqual({
      found: believed(true),
      receiptsAsked: 2,
    });
    expect(await read({ receipt: useless })).toEqual({ found: null, receiptsAsked: 3 });
  });

  test("that says reverted is believed where the transaction is in that block", async () => {
    expect(await read({ receipt: receipt("0x0"), transaction })).toEqual({
      found: believed(false),
      receiptsAsked: 1,
    });
  });

  test.each([
    ["pending", { hash, blockHash: null, blockNumber: null }],
    ["unknown", null],
    ["in another block", { ...transaction, blockHash: word("d") }],
    ["at another height", { ...transaction, blockNumber: "0x8" }],
    ["another one", { ...transaction, hash: word("e") }],
  ])("that says reverted is not believed where the transaction is %s", async (_, said) => {
    const mixedUp: Says = { receipt: receipt("0x0"), transaction: said };
    expect(await read(mixedUp)).toEqual({ found: null, receiptsAsked: 3 });
    expect((await read(mixedUp, { receipt: receipt("0x1") })).found).toEqual(believed(true));
  });
});

describe("reading the answer of a node", () => {
  const log = {
    address: `0x${"1".repeat(40)}`,
    topics: [word("2"), word("3")],
    data: "0x12",
    logIndex: "0x7",
  };
  const receipt = {
    transactionHash: hash,
    status: "0x1",
    blockNumber: "0x10",
    blockHash: word("b"),
    logs: [log],
    gasUsed: "0x5208",
    effectiveGasPrice: "0x64",
  };

  test("a receipt is read", () => {
    expect(readReceipt(receipt, hash)).toEqual({
      hash,
      succeeded: true,
      blockNumber: 16n,
      blockHash: word("b"),
      logs: [{ ...log, logIndex: 7 }],
      gasCost: 2_100_000n,
    });
    expect(readReceipt({ ...receipt, status: "0x0", logs: [] }, hash)).toMatchObject({ succeeded: false });
    const ofIt = { ...receipt, logs: [{ ...log, transactionHash: hash.toUpperCase().replace("X", "x") }] };
    expect(readReceipt(ofIt, hash)).toMatchObject({ succeeded: true });
  });

  test("what a rollup charges for the data counts as gas; a node that does not tell the price tells no cost", () => {
    expect(readReceipt({ ...receipt, l1Fee: "0x3e8" }, hash)?.gasCost).toBe(2_101_000n);
    expect(readReceipt({ ...receipt, effectiveGasPrice: undefined }, hash)).toMatchObject({
      succeeded: true,
      gasCost: undefined,
    });
  });

  test("without a receipt, or with one of a transaction that is not mined, there is none yet", () => {
    expect(readReceipt(null, hash)).toBeNull();
    expect(readReceipt({ ...receipt, blockNumber: null, blockHash: null }, hash)).toBeNull();
    expect(readReceipt({ ...receipt, blockHash: word("0") }, hash)).toBeNull();
  });

  test.each([
    ["of another transaction", { ...receipt, transactionHash: word("c") }],
    ["without status", { ...receipt, status: undefined }],
    ["with a status that is none", { ...receipt, status: "0x2" }],
    ["with a status that is a number", { ...receipt, status: 1 }],
    ["with a block number that is a number", { ...receipt, blockNumber: 16 }],
    ["without block hash", { ...receipt, blockHash: undefined }],
    ["without logs", { ...receipt, logs: undefined }],
    ["with logs that are none", { ...receipt, logs: [null] }],
    ["with a log without address", { ...receipt, logs: [{ ...log, address: "0x12" }] }],
    ["with topics that are no words", { ...receipt, logs: [{ ...log, topics: ["0x12"] }] }],
    ["with data of half a byte", { ...receipt, logs: [{ ...log, data: "0x123" }] }],
    ["with a log without index", { ...receipt, logs: [{ ...log, logIndex: undefined }] }],
    ["with a log of another transaction", { ...receipt, logs: [{ ...log, transactionHash: word("c") }] }],
    ["that is text", "0x1"],
    ["that is missing", undefined],
  ])("a receipt %s is malformed", (_, answer) => {
    expect(readReceipt(answer, hash)).toBeUndefined();
  });

  test("never throws", () => {
    const field = fc.oneof(fc.anything(), fc.constantFrom(hash, "0x1", "0x0", null, [log]));
    const almost = fc.record({
      transactionHash: fc.constant(hash),
      status: field,
      blockNumber: field,
      blockHash: field,
      logs: fc.oneof(
        field,
        fc.array(
          fc.record({
            address: field,
            topics: fc.oneof(field, fc.array(field)),
            data: field,
            logIndex: field,
          }),
        ),
      ),
    });
    fc.assert(
      fc.property(fc.oneof(fc.anything(), almost), (answer) => {
        readReceipt(answer, hash);
      }),
      { numRuns: 1_000 },
    );
  });

  test("its logs may carry any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array().map(toHex), (data) => {
        expect(readReceipt({ ...receipt, logs: [{ ...log, data }] }, hash)?.logs[0]?.data).toBe(data);
      }),
    );
  });
});
