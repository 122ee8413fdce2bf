import { writeFile } from "node:fs/promises";
import { readFacilitatorUrl, readNetwork } from "../../config/values.ts";
import { createVariableReader } from "../../config/variable-reader.ts";
import { variables } from "../../config/variables.ts";
import { findFacilitator } from "../../conformance/find-facilitator.ts";
import { renderJunit } from "../../conformance/junit.ts";
import { describeResults, tally } from "../../conformance/report.ts";
import { runConformance } from "../../conformance/run-conformance.ts";
import { ConfigurationError, KitError } from "../../errors.ts";
import { scenarios } from "../../fixtures/cases/scenarios.ts";
import { testKeys } from "../../published/test-keys.ts";
import { nearest } from "../../util/nearest.ts";
import { addressOption, defineCommand, flag, variableOption } from "../kit/command.ts";
import { renderConformance } from "./conformance-report.ts";

const url = variables.X402_KIT_URL.default;

export const conformance = defineCommand({
  options: {
    url: {
      describe: "where the facilitator is: by default, that of a running `up`",
      placeholder: "URL",
      example: url,
      read: readFacilitatorUrl,
      default: url,
    },
    "api-key": variableOption("X402_API_KEY", { placeholder: "KEY", example: testKeys.local.apiKey }),
    network: {
      describe: "where to pay (default: the first that the facilitator lists)",
      placeholder: "NAME",
      example: "base-sepolia",
      read: readNetwork,
    },
    contract: addressOption("payTo of payments: the facilitator contract (that of `up` is known)"),
    filter: {
      describe: "run only scenarios whose names contain this, such as settle.v2 or insufficient_funds",
      placeholder: "NAME",
      example: "settle.v2",
      read: (text) => text,
      default: "",
    },
    junit: {
      describe: "write the report as JUnit XML to a file too",
      placeholder: "FILE",
      example: "conformance.xml",
      read: (text) => text,
    },
    json: flag("print the report as JSON"),
  },
  variables: ["PAYER_PRIVATE_KEY"],
  environment(env) {
    const reader = createVariableReader(env);
    const payerKey = reader.read("PAYER_PRIVATE_KEY");
    if (reader.problems().length > 0) throw new ConfigurationError(reader.problems());
    return { payerKey };
  },

  async run(values, { print }, { payerKey }) {
    const { url, network, contract, filter, junit, json } = values;
    const apiKey = values["api-key"] ?? testKeys.local.apiKey;
    const chosen = scenarios.filter(({ name }) => name.includes(filter));
    if (chosen.length === 0) {
      const names = scenarios.map(({ name }) => name);
      throw new KitError(`No scenario's name contains "${filter}"`, {
        hints: [`The nearest are ${nearest(filter, names, 3).join(", ")}`],
      });
    }
    const facilitator = await findFacilitator({ baseUrl: url, apiKey, network, contract, payerKey });
    const results = await runConformance(facilitator, chosen);

    print(
      json ? JSON.stringify(describeResults(facilitator, results)) : renderConformance(facilitator, results),
    );
    if (junit !== undefined) await write(junit, renderJunit(facilitator, results));
    const { passed, failed } = tally(results);
    return failed === 0 && passed > 0 ? 0 : 1;
  },
});

async function write(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (cause) {
    throw new KitError(`The report could not be written to ${file}`, { cause });
  }
}
