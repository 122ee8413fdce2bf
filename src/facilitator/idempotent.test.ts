import { expect, test } from "vitest";
import { hashOf } from "../../test/support/ledger/test-ledger.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { settleIdempotently } from "./idempotent.ts";

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
  const delivery = { delivered: note("delivered"), lost: note("lost") };
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
