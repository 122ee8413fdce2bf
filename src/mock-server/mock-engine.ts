import { findScenario, type ScenarioName } from "../fixtures/cases/scenarios.ts";
import { createFixtureEngine, type FixtureEngine, type FixtureOptions } from "../fixtures/engine/engine.ts";

export type MockEngineOptions = FixtureOptions & {
  /** What requests of their operations come to when nothing else was asked for; also after a reset. */
  scenarios?: readonly ScenarioName[];
};

/** Fixtures whose requests end as the server was told, until a test says otherwise. */
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
