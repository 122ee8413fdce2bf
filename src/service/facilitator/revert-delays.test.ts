import { beforeEach, describe, expect, test, vi } from "vitest";
import { addressOf, asset, hashOf } from "../../../test/support/ledger/test-ledger.ts";
import type { Outcomes, PayerAccount, SettlesOf } from "../../ledger/ledger.ts";
import type { Hex } from "../../protocol/hex.ts";
import { createRevertDelays, type RevertDelays } from "./revert-delays.ts";

const code = hashOf("a wallet's code");
const blockMs = 2_000;

type Settle = { payer: PayerAccount; organizationId: string; payerCode: Hex | null } & {
  state: "submitted" | "settled" | "failed";
  decidedAt: number;
};

/** The ledger that all instances share. */
let ledger: Settle[];
let looks: number;
let isGone: boolean;
let delays: RevertDelays;
beforeEach(() => {
  vi.useFakeTimers({ now: 1_800_000_000_000 });
  ledger = [];
  looks = 0;
  isGone = false;
  delays = openInstance();
  return () => vi.useRealTimers();
});

const never = new AbortController().signal;
const payerOf = (number: number, chainId = 8453): PayerAccount => ({
  chainId,
  asset,
  payer: addressOf(number),
});

function openInstance(): RevertDelays {
  const isOf = (of: SettlesOf) => (settle: Settle) => {
    if (of.kind === "payer") return settle.payer.payer === of.payer && settle.payer.chainId === of.chainId;
    if (settle.payerCode === null || settle.organizationId !== of.organizationId) return false;
    return of.kind === "organization" || settle.payerCode === of.payerCode;
  };
  const recentSettles = async (of: SettlesOf, since: number) => {
    looks++;
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (isGone) throw new Error("the database cannot be reached");
    const all = ledger.filter(isOf(of));
    const recent = all.filter(({ decidedAt }) => decidedAt > since);
    const failed = recent.filter(({ state }) => state === "failed");
    const codes = new Set(failed.map(({ payerCode }) => payerCode));
    return {
      underWay: all.filter(({ state }) => state === "submitted").length,
      settled: recent.filter(({ state }) => state === "settled").length,
      reverted: of.kind === "organization" ? codes.size : failed.length,
      lastRevertedAt: failed.at(-1)?.decidedAt ?? null,
    };
  };
  const hasPaidLast: Outcomes["hasPaidLast"] = async ({ payer }, { organizationId, payerCode }) =>
    ledger.findLast(
      (settle) =>
        settle.payer.payer === payer &&
        settle.organizationId === organizationId &&
        settle.payerCode === payerCode,
    )?.state === "settled";
  return createRevertDelays({ recentSettles, hasPaidLast }, Date.now);
}

type Payment = {
  payer?: number;
  payerCode?: Hex | null;
  organizationId?: string;
  ending?: "settled" | "failed";
  withinMs?: number;
  at?: RevertDelays;
};

/** Settles a payment: waits for its turn, and for the next block. Gives how long it has waited for its turn. */
async function settle({
  payer: number = 1,
  payerCode = null,
  organizationId = "shop",
  ending = "failed",
  withinMs = 80_000,
  at = delays,
}: Payment = {}): Promise<number> {
  const startedAt = Date.now();
  const payer = payerOf(number);
  const turn = at.of(payer, { organizationId, network: { name: "base" } });
  let isSuspect = false;
  try {
    await turn.take(payerCode, { now: Date.now, signal: never, deadline: startedAt + withinMs });
    const waited = Date.now() - startedAt;
    const entry: Settle = { payer, organizationId, payerCode, state: "submitted", decidedAt: 0 };
    ledger.push(entry);
    await new Promise((resolve) => setTimeout(resolve, blockMs - (Date.now() % blockMs)));
    entry.state = ending;
    entry.decidedAt = Date.now();
    isSuspect = ending === "failed";
    return waited;
  } finally {
    turn.end(isSuspect);
  }
}

/** Lets time pass until a promise has ended. */
async function finish<T>(promise: Promise<T>): Promise<T> {
  let isOver = false;
  void promise.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  while (!isOver) await vi.advanceTimersByTimeAsync(50);
  return promise;
}

/** Payments one after the other: how many whole seconds each has waited. */
async function settleInTurn(payments: readonly Payment[]): Promise<number[]> {
  const waits: number[] = [];
  for (const payment of payments) waits.push(Math.round((await finish(settle(payment))) / 1_000));
  return waits;
}

const times = (count: number, payment: Payment) => Array.from({ length: count }, () => payment);

describe("a plain account", () => {
  test("has three reverts free; each further one doubles the wait, up to 32 seconds", async () => {
    expect(await settleInTurn(times(11, {}))).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 32]);
  });

  test("does not end that by a payment that succeeds, but makes up for one revert by four", async () => {
    await settleInTurn(times(5, {}));
    const good = { ending: "settled" } as const;
    expect(await settleInTurn(times(4, good))).toEqual([2, 0, 0, 0]);
    expect(await settleInTurn([good, ...times(4, {})])).toEqual([0, 0, 2, 4, 8]);
  });

  test("does not wait for others, nor for the same payer on another network", async () => {
    await settleInTurn(times(9, {}));
    await settleInTurn(Array.from({ length: 6 }, (_, index) => ({ payer: 100 + index, payerCode: code })));
    expect(await settleInTurn([{ payer: 2 }])).toEqual([0]);
    const elsewhere = delays.of(payerOf(1, 137), { organizationId: "shop", network: { name: "polygon" } });
    expect(await elsewhere.take(null, { now: Date.now, signal: never, deadline: Date.now() })).toBe(false);
  });

  test("is not looked up unless it was seen to revert, and begins anew after ten minutes", async () => {
    await settleInTurn(times(20, { ending: "settled" }));
    expect(looks).toBe(0);
    await settleInTurn(times(6, {}));
    vi.setSystemTime(Date.now() + 600_001);
    expect(await settleInTurn([{}])).toEqual([0]);
  });

  test("that would wait for too long is told at once, and may come again", async () => {
    await settleInTurn(times(7, {}));
    await expect(finish(settle({ withinMs: 1_500 }))).rejects.toThrow(
      "Recent settles of this payer reverted",
    );
    expect((await settleInTurn([{}]))[0]).toBeLessThanOrEqual(8);
  });

  test("pays one after the other while it is delayed", async () => {
    await settleInTurn(times(5, {}));
    const all = Promise.all(times(3, { ending: "settled" }).map(settle));
    expect((await finish(all)).map((ms) => Math.round(ms / 1_000))).toEqual([2, 4, 6]);
  });
});

describe("a payer with code", () => {
  const wallet = (payer: number, changes: Payment = {}) => ({ payer, payerCode: code, ...changes });

  test("waits for what others with that code have done at its organization, at every instance", async () => {
    await settleInTurn([1, 2, 3, 4, 5].map((payer) => wallet(payer)));
    expect(await settleInTurn([wallet(6, { at: openInstance() })])).toEqual([2]);
    expect(await settleInTurn([wallet(7, { organizationId: "bakery" })])).toEqual([0]);
    expect(await settleInTurn([wallet(8, { payerCode: hashOf("other code") })])).toEqual([0]);
  });

  test("does not wait for others if its last settle there succeeded, with one settle at a time", async () => {
    const good = { ending: "settled" } as const;
    await settleInTurn([wallet(1, good)]);
    await settleInTurn([2, 3, 4, 5, 6, 7].map((payer) => wallet(payer)));
    expect(await settleInTurn([wallet(1, good)])).toEqual([0]);
    const [passing, other] = await finish(Promise.all([settle(wallet(1)), settle(wallet(1, good))]));
    expect([passing, other].map((ms) => Math.round(ms / 1_000))).toEqual([0, 10]);
    // Its success was claimed after its revert.
    expect(await settleInTurn(times(2, wallet(1)))).toEqual([0, 16]);
    expect(await settleInTurn([wallet(1, { payerCode: hashOf("other code") })])).toEqual([0]);
    await settleInTurn([wallet(8, { ...good, organizationId: "bakery" })]);
    expect((await settleInTurn([wallet(8, good)]))[0]).toBeGreaterThan(8);
  });

  test("that has not reverted goes before those that have, however many wait", async () => {
    await settleInTurn([1, 2, 3, 4, 5, 6].map((payer) => wallet(payer)));
    const bad = [1, 2, 3, 4, 5, 6].map((payer) => settle(wallet(payer)).catch(() => -1));
    await vi.advanceTimersByTimeAsync(500);
    expect((await settleInTurn([wallet(7, { ending: "settled" })]))[0]).toBeLessThanOrEqual(4);
    await finish(Promise.all(bad));
  });

  test("has company of seven at a time, and of more as they succeed", async () => {
    const atOnce = async (count: number) => {
      const before = ledger.length;
      const all = Promise.all(
        Array.from({ length: count }, (_, payer) => settle(wallet(payer, { ending: "settled" }))),
      );
      await vi.advanceTimersByTimeAsync(20);
      const underWay = ledger.length - before;
      await finish(all);
      return underWay;
    };
    expect(await atOnce(40)).toBe(8);
    expect(await atOnce(100)).toBe(48);
  });

  test("waits for different codes of one organization's payers, but not for one that reverts alone", async () => {
    const newCode = (payer: number, organizationId = "shop") =>
      wallet(payer, { payerCode: hashOf(`${payer}`), organizationId });
    await settleInTurn(times(4, wallet(1)));
    expect(await settleInTurn([newCode(2)])).toEqual([0]);
    expect(await settleInTurn([3, 4, 5].map((payer) => newCode(payer)))).toEqual([0, 0, 1]);
    expect(await settleInTurn([newCode(6), newCode(7, "bakery"), { payer: 8 }])).toEqual([2, 0, 0]);
  });

  test("is turned away where two hundred of an organization wait already", async () => {
    const all = Promise.allSettled(
      Array.from({ length: 300 }, (_, payer) => settle(wallet(payer, { ending: "settled" }))),
    );
    const reasons = (await finish(all)).flatMap((end) =>
      end.status === "rejected" ? [String(end.reason)] : [],
    );
    expect(reasons).toHaveLength(300 - 200 - 8);
    expect(new Set(reasons)).toEqual(
      new Set([expect.stringContaining("Too many payments to this organization wait")]),
    );
    expect(await settleInTurn([wallet(301, { ending: "settled" })])).toEqual([0]);
  });

  test("has its organization's own places", async () => {
    const all = Promise.allSettled(
      Array.from({ length: 300 }, (_, payer) =>
        settle(wallet(payer, { ending: "settled", organizationId: payer < 150 ? "shop" : "bakery" })),
      ),
    );
    expect((await finish(all)).filter(({ status }) => status === "rejected")).toEqual([]);
  });

  test("leaves its place when its caller goes, and gets an error where the ledger is gone", async () => {
    await settleInTurn(times(8, wallet(1)));
    const leaving = new AbortController();
    const turn = delays.of(payerOf(2), { organizationId: "shop", network: { name: "base" } });
    const waiting = turn.take(code, { now: Date.now, signal: leaving.signal, deadline: Date.now() + 80_000 });
    const left = expect(waiting).rejects.toThrow("The caller left");
    await vi.advanceTimersByTimeAsync(1_000);
    leaving.abort();
    await left;
    isGone = true;
    await expect(finish(settle(wallet(3)))).rejects.toThrow("cannot be reached");
    isGone = false;
    expect((await settleInTurn([wallet(3)]))[0]).toBeLessThanOrEqual(16);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a hundred fresh wallets that pass every simulation and revert", () => {
  /** How many revert in the first second (the first block), in the first minute and within an hour. */
  async function attack({
    instances = 1,
    goodIn = 0,
    codes = 1,
  }: {
    instances?: number;
    goodIn?: number;
    codes?: number;
  }) {
    const all = [delays, ...Array.from({ length: instances - 1 }, openInstance)];
    const startedAt = Date.now();
    const isOver = () => Date.now() - startedAt >= 3_600_000;
    let sent = 0;
    const wallets = Array.from({ length: 100 }, async (_, index) => {
      const at = all[index % instances] ?? delays;
      while (!isOver()) {
        const isGood = goodIn > 0 && sent++ % goodIn === 0;
        const payerCode = hashOf(`code ${index % codes}`);
        await settle({ payer: index, payerCode, at, ending: isGood ? "settled" : "failed" }).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    });
    const over = Promise.all(wallets);
    while (!isOver()) await vi.advanceTimersByTimeAsync(10_000);
    await vi.advanceTimersByTimeAsync(200_000);
    await over;
    const reverts = (withinMs: number) =>
      ledger.filter(({ state, decidedAt }) => state === "failed" && decidedAt <= startedAt + withinMs).length;
    return { first: reverts(blockMs), minute: reverts(60_000), hour: reverts(3_600_000) };
  }

  test.each([
    ["eight transactions at once, and some hundred an hour", {}, { first: 8, minute: 10, hour: 114 }],
    ["hardly more when one payment in four is good", { goodIn: 4 }, { first: 6, minute: 11, hour: 117 }],
    [
      "three times as much at most with three instances",
      { instances: 3 },
      { first: 8, minute: 10, hour: 166 },
    ],
    ["as much with code of their own each", { codes: 100 }, { first: 8, minute: 10, hour: 114 }],
  ])("cost %s", async (_, options, reverts) => {
    expect(await attack(options)).toEqual(reverts);
  });

  test("keep no plain account waiting", async () => {
    const attacking = Promise.allSettled(
      Array.from({ length: 100 }, (_, payer) => settle({ payer, payerCode: code })),
    );
    expect(await settleInTurn(times(20, { payer: 500, ending: "settled" }))).toEqual(
      times(20, {}).map(() => 0),
    );
    await finish(attacking);
  });
});

test("two payments that each hold what the other waits for both have their turn, and leave the process time for others", async () => {
  vi.useRealTimers();
  let mostOfTheCode = 2;
  let reads = 0;
  const own = createRevertDelays(
    {
      // At once, as SQLite answers; of the organization's payers with code one may pay at a time.
      async recentSettles({ kind }) {
        if (++reads > 2_000) throw new Error("read without an end");
        const isOne = kind === "organization" || mostOfTheCode === 1;
        return { underWay: 0, settled: isOne ? 0 : -6, reverted: isOne ? 4 : 0, lastRevertedAt: null };
      },
      hasPaidLast: async () => false,
    },
    Date.now,
  );
  const turnOf = (payer: number) =>
    own.of(payerOf(payer), { organizationId: "shop", network: { name: "base" } });
  const take = (turn: ReturnType<typeof turnOf>) =>
    turn.take(code, { now: Date.now, signal: never, deadline: Date.now() + 20_000 });
  const settleNow = async (payer: number) => {
    const turn = turnOf(payer);
    await take(turn).finally(() => turn.end(false));
  };
  const first = turnOf(1);
  await take(first);
  // It finds room for the code, and none at the organization; the next one none for the code.
  const second = settleNow(2);
  await new Promise((resolve) => setTimeout(resolve, 20));
  mostOfTheCode = 1;
  const third = settleNow(3);
  await new Promise((resolve) => setTimeout(resolve, 20));
  first.end(false);
  await Promise.all([second, third]);
  expect(reads).toBeLessThan(100);
});
