import { beforeEach, expect, test } from "vitest";
import { hashOf } from "../../../test/support/ledger/test-ledger.ts";
import type { IdempotencyEntry, KeptAnswer, Ledger } from "../../ledger/ledger.ts";
import { settleIdempotently } from "./idempotent.ts";
import { alreadyDelivered, type SettleResult } from "./settle-result.ts";

const transaction = hashOf("transaction");

/** The steps that were taken, in order. */
let done: unknown[];
let entry: IdempotencyEntry;
beforeEach(() => {
  done = [];
  entry = { status: "new" };
});

/** One request with a key, whose settle succeeds. */
function settleWithKey(): Promise<SettleResult> {
  const note = (what: string) => async (kept?: KeptAnswer | string) =>
    void done.push(typeof kept === "object" ? [what, kept.key] : what);
  // Of the ledger nothing is needed but what becomes of a key.
  const ledger = {
    leases: {
      beginIdempotent: async () => entry,
      answerIdempotent: note("kept"),
      abandonIdempotent: note("freed"),
    },
    claims: { find: async () => ({ state: "settled" }) },
  } as unknown as Ledger;
  const delivery = { ...alreadyDelivered, delivered: note("delivered"), lost: note("lost") };
  const waiting = { now: Date.now, deadline: Date.now() + 1_000, signal: new AbortController().signal };
  const key = { key: "key", bodyHash: "hash" };
  const settle = async (): Promise<SettleResult> => ({ kind: "success", transaction, delivery });
  return settleIdempotently(ledger, "shop", key, hashOf("payment"), waiting, settle);
}

async function succeed() {
  const result = await settleWithKey();
  if (result.kind !== "success") throw new Error("nothing was settled");
  expect(result.transaction).toBe(transaction);
  return result.delivery;
}

test("a success is kept under its key when it is delivered, and not before", async () => {
  const { delivered } = await succeed();
  expect(done).toEqual([]);
  await delivered();
  expect(done).toEqual([["delivered", "key"]]);
});

test("a success that is lost frees its key: another request may get it, without the key", async () => {
  const { lost } = await succeed();
  await lost();
  expect(done).toEqual(["freed", "lost"]);
});

test("a success that is given again is not handed over again", async () => {
  entry = { status: "answered", answer: JSON.stringify({ kind: "success", transaction }) };
  const { delivered, lost } = await succeed();
  await delivered();
  await lost();
  expect(done).toEqual([]);
});
