import { describe, expect, test } from "vitest";
import { createTokenBuckets } from "./limits.ts";

function bucketsAt(start: number, rate: { burst: number; perSecond: number }, maxNames = 100) {
  const clock = { time: start };
  return { clock, buckets: createTokenBuckets(rate, { maxNames, now: () => clock.time }) };
}

describe("one name", () => {
  test.each([
    { burst: 1, perSecond: 1 },
    { burst: 7, perSecond: 3 },
    { burst: 2_000, perSecond: 200 },
    { burst: 10, perSecond: 0.1 },
  ])("gets its burst of $burst at once, at whatever time, and not one more", (rate) => {
    for (const start of [0, 0.1, 123_456.789, 2 ** 40]) {
      const { buckets } = bucketsAt(start, rate);
      for (let taken = 1; taken <= rate.burst; taken++) {
        expect(buckets.take("a")).toMatchObject({ allowed: true, remaining: rate.burst - taken });
      }
      expect(buckets.take("a")).toMatchObject({ allowed: false, remaining: 0 });
    }
  });

  test("learns when it may try again, and then may", () => {
    const { buckets, clock } = bucketsAt(5_000, { burst: 3, perSecond: 0.5 });
    for (let taken = 0; taken < 3; taken++) buckets.take("a");
    expect(buckets.take("a")).toEqual({
      allowed: false,
      remaining: 0,
      fullInSeconds: 6,
      retryAfterSeconds: 2,
    });
    clock.time += 1_990;
    expect(buckets.take("a").allowed).toBe(false);
    clock.time += 10;
    expect(buckets.take("a")).toMatchObject({ allowed: true, retryAfterSeconds: 0 });
  });

  test("loses nothing by being refused", () => {
    const { buckets, clock } = bucketsAt(0, { burst: 1, perSecond: 1 });
    buckets.take("a");
    for (let refused = 0; refused < 1_000; refused++) expect(buckets.take("a").allowed).toBe(false);
    clock.time += 1_000;
    expect(buckets.take("a").allowed).toBe(true);
  });

  test("that was idle for long has exactly a full bucket", () => {
    const { buckets, clock } = bucketsAt(0, { burst: 5, perSecond: 100 });
    buckets.take("a");
    clock.time += 1_000_000;
    const allowed = Array.from({ length: 10 }, () => buckets.take("a").allowed);
    expect(allowed.filter(Boolean)).toHaveLength(5);
  });

  test("that gives back what it took can go on for ever", () => {
    const { buckets } = bucketsAt(0, { burst: 2, perSecond: 0.001 });
    for (let round = 0; round < 1_000; round++) {
      expect(buckets.take("a").allowed).toBe(true);
      buckets.giveBack("a");
    }
    expect(buckets.take("a").remaining).toBe(1);
  });
});

describe("many names", () => {
  test("do not take from one another", () => {
    const { buckets } = bucketsAt(0, { burst: 1, perSecond: 1 });
    expect(buckets.take("a").allowed).toBe(true);
    expect(buckets.take("b").allowed).toBe(true);
    expect(buckets.take("a").allowed).toBe(false);
  });

  test("take bounded memory: the name that was idle for the longest is forgotten", () => {
    const { buckets } = bucketsAt(0, { burst: 1, perSecond: 0.001 }, 10);
    for (const name of ["a", "b"]) buckets.take(name);
    for (let index = 0; index < 9; index++) {
      buckets.take(`other ${index}`);
      buckets.take("a");
    }
    expect(buckets.take("a").allowed).toBe(false);
    expect(buckets.take("b").allowed).toBe(true);
  });
});
