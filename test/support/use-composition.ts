import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type Composition, compose } from "./composition.ts";
import { killServiceProcesses } from "./service-process.ts";

/** The composition of all tests of a file; each test has a directory of its own, and what it started ends with it. */
export function useComposition(): Composition {
  // Filled before the first test.
  const composition = {} as Composition;
  beforeAll(async () => {
    Object.assign(composition, await compose());
  });
  afterAll(async () => {
    killServiceProcesses();
    await composition.close();
  });
  beforeEach(() => composition.openDirectory());
  afterEach(() => composition.stopAll());
  return composition;
}
