import { beforeEach, describe, expect, test } from "vitest";
import { createIdentityCache, type IdentityCache } from "./create-organizations.ts";

let time: number;
let loads: string[];
/** The next loads wait for this, if a test sets it. */
let gate: Promise<void> | undefined;
let cache: IdentityCache<string>;

beforeEach(() => {
  time = 1_000_000;
  loads = [];
  gate = undefined;
  cache = createIdentityCache({
    load: async (name) => {
      loads.push(name);
      const value = `${name} ${loads.length}`;
      await gate;
      return value;
    },
    now: () => time,
    maxAgeMs: 100,
    maxEntries: 3,
  });
});

test("loads a name once while it is young enough", async () => {
  expect(await cache.get("a")).toBe("a 1");
  time += 99;
  expect(await cache.get("a")).toBe("a 1");
  time += 1;
  expect(await cache.get("a")).toBe("a 2");
});

test("loads a name once for concurrent calls", async () => {
  const values = await Promise.all(Array.from({ length: 10 }, () => cache.get("a")));
  expect(new Set(values)).toEqual(new Set(["a 1"]));
});

test("counts the age from the start of the load, which may be slow", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = promise;
  const slow = cache.get("a");
  time += 100;
  resolve();
  expect(await slow).toBe("a 1");
  expect(await cache.get("a")).toBe("a 2");
});

describe("forgets", () => {
  test("only the oldest when there are too many", async () => {
    for (const name of ["a", "b", "c", "d"]) await cache.get(name);
    for (const name of ["b", "c", "d"]) await cache.get(name);
    expect(loads).toEqual(["a", "b", "c", "d"]);
    await cache.get("a");
    expect(loads).toEqual(["a", "b", "c", "d", "a"]);
  });

  test("everything when it is cleared, loads under way included", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gate = promise;
    const before = cache.get("a");
    cache.clear();
    const after = cache.get("a");
    resolve();
    expect(await before).toBe("a 1");
    expect(await after).toBe("a 2");
    expect(await cache.get("a")).toBe("a 2");
  });

  test("a load that failed", async () => {
    gate = Promise.reject(new Error("database is away"));
    await expect(cache.get("a")).rejects.toThrow("database is away");
    gate = undefined;
    expect(await cache.get("a")).toBe("a 2");
  });
});
