import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type Composition, compose } from "./composition.ts";
import { composeRecovery, type RecoveryScene } from "./recovery-scene.ts";
import { killServiceProcesses } from "./service-process.ts";

/** The composition for all tests in a file. Each test has its own directory, and whatever it started ends with it. */
export function useComposition(): Composition {
  return useOne(compose, (composition) => composition.stopAll());
}

/** The scene for all tests in a file. Each test has its own database. */
export function useRecoveryScene(): RecoveryScene {
  return useOne(composeRecovery, (scene) => scene.clear());
}

function useOne<One extends { openDirectory(): Promise<void>; close(): Promise<void> }>(
  make: () => Promise<One>,
  clear: (one: One) => Promise<void>,
): One {
  // Filled before the first test.
  const one = {} as One;
  beforeAll(async () => {
    Object.assign(one, await make());
  });
  afterAll(async () => {
    killServiceProcesses();
    await one.close();
  });
  beforeEach(() => one.openDirectory());
  afterEach(() => clear(one));
  return one;
}
