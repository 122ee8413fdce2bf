export type { ScenarioName } from "../fixtures/cases/scenarios.ts";
export type { MockDescription } from "./describe-mock.ts";
export { type MockServer, type MockServerOptions, startMockServer } from "./start-mock-server.ts";
