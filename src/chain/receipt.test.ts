import fc from "fast-check";
import { expect, test } from "vitest";
import { toHex } from "../protocol/hex.ts";
import { readReceipt } from "./receipt-reader.ts";

const word = (digit: string) => `0x${digit.repeat(64)}` as const;
const hash = word("a");
const log = { address: `0x${"1".repeat(40)}`, topics: [word("2"), word("3")], data: "0x12", logIndex: "0x7" };
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
  const named = { ...receipt, logs: [{ ...log, transactionHash: hash.toUpperCase().replace("X", "x") }] };
  expect(readReceipt(named, hash)).toMatchObject({ succeeded: true });
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
