import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { KitError } from "../../util/errors.ts";
import { createHarnessPool, type Poolable } from "./start-pool.ts";

/** A harness that only counts what is done to it. */
function createCounted(failing: { reset?: boolean } = {}) {
  const counted = { resets: 0, closed: 0, fail: (_error: KitError) => {} };
  const harness: Poolable & { counted: typeof counted } = {
    counted,
    async reset() {
      if (failing.reset === true) throw new KitError("its first snapshot is gone");
      counted.resets++;
    },
    async close() {
      counted.closed++;
    },
    onFailure(listener) {
      counted.fail = listener;
    },
  };
  return harness;
}

type Counted = ReturnType<typeof createCounted>;

function createPool(most: number, make: () => Counted | Promise<Counted> = createCounted) {
  const started: Counted[] = [];
  const pool = createHarnessPool(async () => {
    const harness = await make();
    started.push(harness);
    return harness;
  }, most);
  const lease = (signal = new AbortController().signal) => pool.lease(signal);
  return { pool, started, lease };
}

test("starts as many as are used at a time, and no more than the most", async () => {
  const { started, lease } = createPool(2);
  const first = await lease();
  first.release();
  await setImmediate();
  const again = await lease();
  expect(again.harness).toBe(first.harness);
  expect(started).toHaveLength(1);

  const second = await lease();
  const third = lease();
  await setImmediate();
  expect(started).toHaveLength(2);
  second.release();
  expect((await third).harness).toBe(second.harness);
});

test("resets a harness before the next lease, once, however often it is given back", async () => {
  const { lease } = createPool(1);
  const first = await lease();
  expect(first.harness.counted.resets).toBe(0);
  first.release();
  first.release();
  const second = await lease();
  expect(second.harness.counted.resets).toBe(1);
  first.release();
  const third = lease();
  await setImmediate();
  expect(second.harness.counted.resets).toBe(1);
  second.release();
  expect((await third).harness.counted.resets).toBe(2);
});

test("a lease that is given up takes nothing from those behind it", async () => {
  const { lease } = createPool(1);
  const held = await lease();
  const leaving = new AbortController();
  const left = lease(leaving.signal);
  const next = lease();
  leaving.abort();
  await expect(left).rejects.toThrow("The lease was cancelled");
  held.release();
  expect((await next).harness).toBe(held.harness);
});

test("a harness that cannot be reset, or whose node has died, is ended, and another one takes its place", async () => {
  const broken = createCounted({ reset: true });
  const supply = [broken];
  const { started, lease } = createPool(1, () => supply.shift() ?? createCounted());
  (await lease()).release();
  const second = await lease();
  expect(broken.counted.closed).toBe(1);
  expect(second.harness).not.toBe(broken);

  second.harness.counted.fail(new KitError("The base node ended unexpectedly"));
  second.release();
  const third = await lease();
  expect(second.harness.counted.closed).toBe(1);
  expect(third.harness).not.toBe(second.harness);
  expect(started).toHaveLength(3);
});

test("what keeps a harness from starting rejects all leases that wait, and the next lease tries again", async () => {
  const reasons = [new KitError("The anvil binary is not installed")];
  const { lease } = createPool(1, () => {
    const reason = reasons.shift();
    if (reason !== undefined) throw reason;
    return createCounted();
  });
  const waiting = [lease(), lease()];
  for (const lost of waiting) await expect(lost).rejects.toThrow("The anvil binary is not installed");
  await lease();
});

test("closing ends what is leased, what is free and what is being started, and refuses leases that wait", async () => {
  const slow = Promise.withResolvers<Counted>();
  const supply = [createCounted(), slow.promise];
  const { pool, started, lease } = createPool(2, () => supply.shift() ?? createCounted());
  const held = await lease();
  const waiting = lease();
  const closing = pool.close();
  await expect(waiting).rejects.toThrow("The pool of harnesses was closed");
  slow.resolve(createCounted());
  await closing;
  expect(started.map(({ counted }) => counted.closed)).toEqual([1, 1]);
  held.release();
  await expect(lease()).rejects.toThrow("The pool of harnesses was closed");
});
