import { beforeEach, expect, test, vi } from "vitest";
import type { Settlement } from "../ledger/settlement.ts";
import { type Hex, keccak256Text } from "../protocol/hex.ts";
import { type BackOff, createBackOff } from "./back-off.ts";

const never = new AbortController().signal;
let settlements: Map<Hex, Pick<Settlement, "state" | "concludedAt">>;
let ledgerIsGone: boolean;
let looks: number;
let backOff: BackOff;
beforeEach(() => {
  vi.useFakeTimers({ now: 1_800_000_000_000 });
  settlements = new Map();
  ledgerIsGone = false;
  looks = 0;
  const find = async (id: Hex) => {
    looks++;
    if (ledgerIsGone) throw new Error("the database cannot be reached");
    return (settlements.get(id) ?? null) as Settlement | null;
  };
  backOff = createBackOff({ find }, Date.now);
  return () => vi.useRealTimers();
});

let count = 0;
function note(payer: string, outcome: "paid" | "reverted"): void {
  backOff.note(payer, keccak256Text(`settlement ${++count}`), outcome);
}

/** How long the payer's next turn takes to come, in milliseconds. */
async function waitOf(payer: string, withinMs = 60_000): Promise<number> {
  const startedAt = Date.now();
  const turn = backOff.turn(payer, { now: Date.now, signal: never, deadline: startedAt + withinMs });
  const settled = turn.then(
    () => Date.now() - startedAt,
    (error: Error) => error,
  );
  await vi.advanceTimersByTimeAsync(withinMs + 1);
  const waited = await settled;
  if (waited instanceof Error) throw waited;
  return waited;
}

test("three reverts of a payer are mishaps; each further one doubles the wait, up to eight seconds", async () => {
  const waits: number[] = [];
  for (let reverts = 0; reverts < 9; reverts++) {
    waits.push(await waitOf("base payer", 20_000));
    note("base payer", "reverted");
  }
  expect(waits).toEqual([0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000, 8_000]);
});

test("other payers, and the same one on another network, do not wait", async () => {
  for (let reverts = 0; reverts < 9; reverts++) note("base payer", "reverted");
  expect([await waitOf("base other"), await waitOf("polygon payer")]).toEqual([0, 0]);
});

test("payments of one payer that come at once leave one after the other", async () => {
  for (let reverts = 0; reverts < 5; reverts++) note("base payer", "reverted");
  const startedAt = Date.now();
  const leave: number[] = [];
  for (let index = 0; index < 3; index++) {
    void backOff
      .turn("base payer", { now: Date.now, signal: never, deadline: startedAt + 60_000 })
      .then(() => leave.push(Date.now() - startedAt));
  }
  await vi.advanceTimersByTimeAsync(60_000);
  expect(leave).toEqual([2_000, 4_000, 6_000]);
});

test("a turn that does not come in time is none, and may be asked for again; a payment that settles ends it", async () => {
  for (let reverts = 0; reverts < 9; reverts++) note("base payer", "reverted");
  await expect(waitOf("base payer", 1_000)).rejects.toThrow("reverted lately");
  note("base payer", "paid");
  expect(await waitOf("base payer")).toBe(0);
});

test("what is still under way counts when it is decided, and all is forgotten after ten minutes", async () => {
  const id = keccak256Text("under way");
  settlements.set(id, { state: "submitted", concludedAt: null });
  backOff.note("base payer", id, "undecided");
  for (let reverts = 0; reverts < 3; reverts++) note("base payer", "reverted");
  expect(await waitOf("base payer")).toBe(0);
  settlements.set(id, { state: "failed", concludedAt: Date.now() });
  expect(await waitOf("base payer")).toBe(1_000);
  vi.setSystemTime(Date.now() + 700_000);
  expect(await waitOf("base payer")).toBe(0);
});

test("what could not be looked up is looked up at the next turn", async () => {
  const id = keccak256Text("under way");
  backOff.note("base payer", id, "undecided");
  for (let reverts = 0; reverts < 3; reverts++) note("base payer", "reverted");
  ledgerIsGone = true;
  await expect(waitOf("base payer")).rejects.toThrow("cannot be reached");
  ledgerIsGone = false;
  settlements.set(id, { state: "failed", concludedAt: Date.now() });
  expect(await waitOf("base payer")).toBe(1_000);
});

test("a hundred payments at once of a payer with some under way look each of these up once", async () => {
  for (let index = 0; index < 10; index++) {
    const id = keccak256Text(`under way ${index}`);
    settlements.set(id, { state: "submitted", concludedAt: null });
    backOff.note("base payer", id, "undecided");
  }
  const waiting = { now: Date.now, signal: never, deadline: Date.now() + 60_000 };
  await Promise.all(Array.from({ length: 100 }, () => backOff.turn("base payer", waiting)));
  expect(looks).toBe(10);
});
