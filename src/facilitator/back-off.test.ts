import { beforeEach, expect, test, vi } from "vitest";
import { asset, paymentOf } from "../../test/support/ledger/test-ledger.ts";
import type { PayerAccount } from "../ledger/ledger.ts";
import { type BackOff, createBackOff } from "./back-off.ts";

const never = new AbortController().signal;
const { payer: address } = paymentOf("a");
const payer: PayerAccount = { chainId: 8453, asset, payer: address };
const other: PayerAccount = { ...payer, payer: paymentOf("b", { payer: 2 }).payer };
const onPolygon: PayerAccount = { ...payer, chainId: 137 };

/** When settles of each payer were reverted, in the ledger that all instances share. */
let reverted: Map<PayerAccount, number[]>;
let ledgerIsGone: boolean;
let looks: number;
let backOff: BackOff;
beforeEach(() => {
  vi.useFakeTimers({ now: 1_800_000_000_000 });
  reverted = new Map();
  ledgerIsGone = false;
  looks = 0;
  const lastReverts = async (of: PayerAccount, limit: number) => {
    looks++;
    if (ledgerIsGone) throw new Error("the database cannot be reached");
    return (reverted.get(of) ?? []).toReversed().slice(0, limit);
  };
  backOff = createBackOff({ lastReverts }, Date.now);
  return () => vi.useRealTimers();
});

/** A settle of a payer is reverted, by another instance. */
function revertElsewhere(of: PayerAccount): void {
  reverted.set(of, [...(reverted.get(of) ?? []), Date.now()]);
}

/** A settle of a payer is reverted. */
function revert(of: PayerAccount): void {
  revertElsewhere(of);
  backOff.suspect(of);
}

/** How long the payer's next turn takes to come, in milliseconds. */
async function waitOf(payer: PayerAccount, withinMs = 60_000): Promise<number> {
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
    waits.push(await waitOf(payer, 20_000));
    revert(payer);
  }
  expect(waits).toEqual([0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000, 8_000]);
});

test("other payers, and the same one on another network, do not wait", async () => {
  for (let reverts = 0; reverts < 9; reverts++) revert(payer);
  expect([await waitOf(other), await waitOf(onPolygon)]).toEqual([0, 0]);
});

test("payments of one payer that come at once leave one after the other", async () => {
  for (let reverts = 0; reverts < 5; reverts++) revert(payer);
  const startedAt = Date.now();
  const leave: number[] = [];
  for (let index = 0; index < 3; index++) {
    void backOff
      .turn(payer, { now: Date.now, signal: never, deadline: startedAt + 60_000 })
      .then(() => leave.push(Date.now() - startedAt));
  }
  await vi.advanceTimersByTimeAsync(60_000);
  expect(leave).toEqual([2_000, 4_000, 6_000]);
});

test("a turn that does not come in time is none, and may be asked for again; a payment that settles ends it", async () => {
  for (let reverts = 0; reverts < 9; reverts++) revert(payer);
  await expect(waitOf(payer, 1_000)).rejects.toThrow("Recent settles of this payer reverted");
  reverted.clear();
  expect(await waitOf(payer)).toBe(0);
});

test("what is still under way counts when it is decided, and all is forgotten after ten minutes", async () => {
  for (let reverts = 0; reverts < 3; reverts++) revert(payer);
  backOff.suspect(payer);
  expect(await waitOf(payer)).toBe(0);
  revertElsewhere(payer);
  expect(await waitOf(payer)).toBe(1_000);
  vi.setSystemTime(Date.now() + 700_000);
  expect(await waitOf(payer)).toBe(0);
  revert(payer);
  expect(await waitOf(payer)).toBe(0);
});

test("what other instances have seen reverted counts as soon as this one has seen something", async () => {
  for (let reverts = 0; reverts < 5; reverts++) revertElsewhere(payer);
  expect([await waitOf(payer), looks]).toEqual([0, 0]);
  revert(payer);
  expect(await waitOf(payer)).toBe(4_000);
});

test("what could not be looked up is looked up at the next turn", async () => {
  for (let reverts = 0; reverts < 4; reverts++) revert(payer);
  ledgerIsGone = true;
  await expect(waitOf(payer)).rejects.toThrow("cannot be reached");
  ledgerIsGone = false;
  revert(payer);
  expect(await waitOf(payer)).toBe(2_000);
});

test("a hundred payments at once of a payer look its reverts up once", async () => {
  revert(payer);
  const waiting = { now: Date.now, signal: never, deadline: Date.now() + 60_000 };
  await Promise.all(Array.from({ length: 100 }, () => backOff.turn(payer, waiting)));
  expect(looks).toBe(1);
});
