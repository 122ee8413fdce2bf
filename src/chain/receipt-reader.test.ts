import { describe, expect, test } from "vitest";
import type { Hex } from "../protocol/hex.ts";
import { createReceiptReader } from "./receipt-reader.ts";

const word = (digit: string): Hex => `0x${digit.repeat(64)}`;
const [hash, blockHash] = [word("a"), word("b")];
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

describe("a receipt", () => {
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
