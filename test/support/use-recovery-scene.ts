import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { composeRecovery, type RecoveryScene } from "./recovery-scene.ts";
import { killServiceProcesses } from "./service-process.ts";

/** The scene of all tests of a file; each test has a database of its own. */
export function useRecoveryScene(): RecoveryScene {
  // Filled before the first test.
  const scene = {} as RecoveryScene;
  beforeAll(async () => {
    Object.assign(scene, await composeRecovery());
  });
  afterAll(async () => {
    killServiceProcesses();
    await scene.close();
  });
  beforeEach(() => scene.openDirectory());
  afterEach(() => scene.clear());
  return scene;
}
