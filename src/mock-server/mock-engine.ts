import { findScenario, type ScenarioName } from "../fixtures/cases/scenarios.ts";
import { createFixtureEngine, type FixtureEngine, type FixtureOptions } from "../fixtures/engine/engine.ts";

export type MockEngineOptions = FixtureOptions & {
  /** Apply when a test asks for nothing else, also after a reset. */
  scenarios?: readonly ScenarioName[];
};

/** Fixtures with usual scenarios, which apply until a test asks for others. */
export function createMockEngine({ scenarios = [], ...options }: MockEngineOptions): FixtureEngine {
  const usual = scenarios.map((name) => findScenario(name).name);
  const engine = createFixtureEngine(options);
  const orderUsual = () => {
    for (const name of usual) engine.scenario(name).always();
  };
  orderUsual();
  const resetEngine = engine.reset;
  return Object.assign(engine, {
    reset() {
      resetEngine();
      orderUsual();
    },
  });
}
