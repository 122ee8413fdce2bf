import { expect, test } from "vitest";
import { hashOf } from "../../test/support/ledger/test-ledger.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { refusals } from "../protocol/refusals.ts";
import { settleIdempotently } from "./idempotent.ts";
import { repeated, type SettleResult } from "./settle.ts";

test("a success whose answer cannot be stored under its key is free for the next request", async () => {
  const fates: string[] = [];
  const note = (fate: string) => async () => void fates.push(fate);
  // Of the ledger nothing is needed but what becomes of a key.
  const unreachable = async () => Promise.reject(new Error("the database is away"));
  const ledger = {
    beginIdempotent: async () => ({ status: "new" }),
    answerIdempotent: unreachable,
    abandonIdempotent: unreachable,
  } as unknown as Ledger;
  const delivery = { ...repeated, delivered: note("delivered"), lost: note("lost") };
  const settled = settleIdempotently(
    ledger,
    "shop",
    { key: "key", bodyHash: "hash" },
    hashOf("payment"),
    { now: Date.now, deadline: Date.now() + 1_000, signal: new AbortController().signal },
    async () => ({ kind: "success", transaction: hashOf("transaction"), delivery }),
  );
  await expect(settled).rejects.toThrow("the database is away");
  expect(fates).toEqual(["lost"]);
});

test("a process that stood still with a success before it was stored gives what the key has by then", async () => {
  const fates: string[] = [];
  const other = hashOf("transaction");
  const entries = [
    { status: "new" },
    { status: "answered", answer: JSON.stringify({ kind: "success", transaction: other }) },
  ];
  // Another instance has taken the key over, and answered.
  const ledger = {
    beginIdempotent: async () => entries.shift(),
    answerIdempotent: async () => false,
    abandonIdempotent: async () => {},
    find: async () => ({ state: "settled" }),
  } as unknown as Ledger;
  const note = (fate: string) => async () => void fates.push(fate);
  const results: SettleResult[] = [
    {
      kind: "success",
      transaction: other,
      delivery: { ...repeated, delivered: note("delivered"), lost: note("lost") },
    },
    { kind: "invalid", invalid: refusals.settledBefore(other), final: true },
  ];
  const result = await settleIdempotently(
    ledger,
    "shop",
    { key: "key", bodyHash: "hash" },
    hashOf("payment"),
    { now: Date.now, deadline: Date.now() + 1_000, signal: new AbortController().signal },
    async () => results.shift() ?? { kind: "pending", transaction: other },
  );
  expect(result).toEqual({ kind: "success", transaction: other, delivery: repeated });
  expect(fates).toEqual(["lost"]);
});
