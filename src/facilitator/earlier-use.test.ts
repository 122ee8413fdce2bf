import { expect, test } from "vitest";
import { refusals } from "../protocol/refusals.ts";
import { refuseWithUse } from "./earlier-use.ts";

const id = `0x${"11".repeat(32)}` as const;
const refusal = refusals.valueDiffers(10_000n, 20_000n, undefined);

test("a payment that another request is about to claim is not to be signed again", async () => {
  const ledger = { findLease: async () => ({ isOwn: false, expiresAt: 0 }), find: async () => null };
  expect(await refuseWithUse(ledger, refusal, id, "org_local")).toMatchObject({
    reason: refusal.reason,
    situation: "under_way",
  });
});

test("the lease is asked for before the settlement, which would be missed between the two otherwise", async () => {
  const asked: string[] = [];
  const ledger = {
    findLease: async () => {
      asked.push("lease");
      return null;
    },
    find: async () => {
      asked.push("settlement");
      return null;
    },
  };
  expect(await refuseWithUse(ledger, refusal, id, "org_local")).toBe(refusal);
  expect(asked).toEqual(["lease", "settlement"]);
});

test("a refusal by which nobody signs again asks no ledger", async () => {
  const unasked = () => Promise.reject(new Error("asked"));
  const paused = refusals.assetPaused();
  expect(await refuseWithUse({ findLease: unasked, find: unasked }, paused, id, undefined)).toBe(paused);
});
