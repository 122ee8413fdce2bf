import fc from "fast-check";
import { expect, test } from "vitest";
import { BatchRefused, readBatch, writeBatch } from "./rpc.ts";

const calls = [
  { method: "a", params: [] },
  { method: "b", params: [1] },
];

test("a batch is numbered without using a number twice in a process", () => {
  const [first, second] = [writeBatch(calls), writeBatch(calls)];
  expect(JSON.parse(first.body)).toEqual([
    { jsonrpc: "2.0", id: first.firstId, method: "a", params: [] },
    { jsonrpc: "2.0", id: first.firstId + 1, method: "b", params: [1] },
  ]);
  expect(second.firstId).toBe(first.firstId + 2);
});

test("whatever comes back, it is an answer to every call or an error that says why not", () => {
  const entry = fc.record(
    {
      id: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.anything()),
      result: fc.anything(),
      error: fc.oneof(
        fc.anything(),
        fc.record({ code: fc.anything(), message: fc.anything(), data: fc.anything() }),
      ),
    },
    { requiredKeys: [] },
  );
  const text = fc.oneof(
    fc.string(),
    fc.json(),
    fc.array(entry, { maxLength: 3 }).map((entries) => JSON.stringify(entries, plain)),
  );
  fc.assert(
    fc.property(text, (text) => {
      const read = tryRead(text);
      if (read instanceof Error) expect([Error, BatchRefused], read.stack).toContain(read.constructor);
      else expect(calls.map((call) => read.has(call))).toEqual([true, true]);
    }),
    { numRuns: 3_000 },
  );
});

function tryRead(text: string): ReturnType<typeof readBatch> | Error {
  try {
    return readBatch(text, 1, calls);
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

/** JSON has no bigint. */
function plain(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}` : value;
}
