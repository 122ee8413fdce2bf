import { describe, expect, test } from "vitest";
import { createHeap } from "../scripts/scale/heap.ts";
import { batchGas, chains, databases, localNode } from "../scripts/scale/inputs.ts";
import { type Scenario, type SimulatedChain, simulate } from "../scripts/scale/simulate.ts";

/*
 * The simulation of docs/scale.md against what is known without it.
 */

const chain: SimulatedChain = {
  name: "base",
  keys: 1,
  weight: 1,
  requestMs: 50,
  confirmations: 2,
  blocks: { everyMs: 2_000, gas: chains.base.blockGas },
  pacedByMs: 2_000,
};
const scenario: Scenario = {
  chains: [chain],
  instances: 2,
  database: databases.postgres,
  recipients: "distinct recipients",
  arrivals: { perSecond: 1_000, seconds: 15 },
  seed: 7,
};

test("the heap gives what was added by time, and in order within a moment", () => {
  const heap = createHeap<number>();
  const times = [5, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 0];
  for (const [index, time] of times.entries()) heap.add(time, index);
  const taken = times.map(() => heap.take());
  const expected = times.map((at, item) => ({ at, item })).sort((a, b) => a.at - b.at || a.item - b.item);
  expect(taken).toMatchObject(expected);
  expect(heap.take()).toBeUndefined();
});

describe("the simulation", () => {
  test("is the same for the same seed, another for another, and answers every payment", () => {
    const result = simulate(scenario);
    expect(simulate(scenario)).toEqual(result);
    expect(simulate({ ...scenario, seed: 8 })).not.toEqual(result);
    expect(result.settled).toBe(result.offered);
  });

  test("one key settles 16 transactions of 50 in a block, and two keys twice that", () => {
    expect(simulate(scenario).perSecond).toBeGreaterThan(360);
    expect(simulate(scenario).perSecond).toBeLessThanOrEqual(420);
    const twice = simulate({ ...scenario, chains: [{ ...chain, keys: 2 }] });
    expect(twice.perSecond).toBeGreaterThan(720);
    expect(twice.perSecond).toBeLessThanOrEqual(840);
  });

  test("the gas of a block bounds a chain, whatever its keys", () => {
    const gas = 20_000_000;
    const blocks = { everyMs: 2_000, gas };
    const { perSecond } = simulate({ ...scenario, chains: [{ ...chain, keys: 4, blocks }] });
    const fitting = Math.floor(gas / batchGas(50, "distinct recipients"));
    expect(perSecond).toBeLessThanOrEqual((fitting * 50) / 2 + 25);
    expect(perSecond).toBeGreaterThan(((fitting * 50) / 2) * 0.85);
  });

  test("is near the bench of decision 0026: transactions for 1,000 at once, and how long one alone takes", () => {
    const local: SimulatedChain = { ...chain, requestMs: 2, confirmations: 1, blocks: localNode };
    const small = { ...scenario, instances: 1, database: databases.sqlite, chains: [local] };
    const burst = simulate({ ...small, arrivals: { atOnce: 1_000 } });
    expect(burst.settled).toBe(1_000);
    expect(burst.transactions).toBeGreaterThanOrEqual(20);
    expect(burst.transactions).toBeLessThanOrEqual(30);
    const lone = simulate({ ...small, arrivals: { perSecond: 5, seconds: 40 } });
    expect(lone.p50Ms).toBeGreaterThan(12);
    expect(lone.p50Ms).toBeLessThan(28);
  });
});
