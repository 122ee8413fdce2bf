import { InvalidValue } from "../../config/values.ts";
import { findScenario, type ScenarioName } from "../../fixtures/cases/scenarios.ts";
import { startMockServer } from "../../mock-server/start-mock-server.ts";
import { defineCommand } from "../kit/command.ts";
import { localOptions } from "../kit/local-options.ts";
import { flag } from "../kit/readers.ts";
import { describeRunningMock } from "./mock-report.ts";

const everyAddress = ["0.0.0.0", "::"];

export const mock = defineCommand({
  options: {
    ...localOptions,
    scenario: {
      describe: "how all requests end; several, separated by commas, for verify, settle and both versions",
      placeholder: "NAMES",
      example: "settle.insufficient_funds",
      read: readScenarios,
      fallback: [],
    },
    json: flag("print one line of JSON when ready, and nothing else"),
  },

  async run(values, { print, printError, takeSignals }) {
    const interrupted = takeSignals();
    const { networks, host, port, scenario: scenarios, json } = values;
    const mainnet = values["contract-mainnet"];
    const testnet = values["contract-testnet"];
    await using server = await startMockServer({
      host,
      port,
      networks,
      contracts: { ...(mainnet && { mainnet }), ...(testnet && { testnet }) },
      scenarios,
    });
    if (everyAddress.includes(host)) {
      printError(
        "This listens on every address of the machine: whoever reaches it decides how requests end.",
      );
    }
    if (json) {
      print(JSON.stringify(server.description));
    } else {
      print(await describeRunningMock(server, scenarios));
      print(`Ready in ${(performance.now() / 1000).toFixed(2)} s. Ctrl-C stops it.`);
    }
    const { promise: stopped, resolve } = Promise.withResolvers<void>();
    if (interrupted.aborted) resolve();
    interrupted.addEventListener("abort", () => resolve());
    await stopped;
    return 0;
  },
});

/** Scenarios by their names, each found before anything starts. */
function readScenarios(text: string): readonly ScenarioName[] {
  return text.split(",").map((name) => {
    try {
      return findScenario(name.trim()).name;
    } catch (error) {
      if (error instanceof RangeError) throw new InvalidValue(error.message);
      throw error;
    }
  });
}
