import { writeFile } from "node:fs/promises";
import {
  readAddress,
  readApiKey,
  readFacilitatorUrl,
  readNetwork,
  readPrivateKey,
} from "../../config/values.ts";
import { findFacilitator } from "../../conformance/find-facilitator.ts";
import { renderJunit } from "../../conformance/junit.ts";
import { describeResults, tally } from "../../conformance/report.ts";
import { runConformance } from "../../conformance/run-conformance.ts";
import { KitError } from "../../errors.ts";
import { scenarios } from "../../fixtures/cases/scenarios.ts";
import { nearest } from "../../fixtures/engine/nearest.ts";
import { testKeys } from "../../published/test-keys.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { defaultUrl } from "../kit/running-harness.ts";
import { renderConformance } from "./conformance-report.ts";

export const conformance = defineCommand({
  options: {
    url: {
      describe: `where the facilitator is (default ${defaultUrl}, a running \`up\`)`,
      placeholder: "URL",
      example: defaultUrl,
      read: readFacilitatorUrl,
      fallback: defaultUrl,
    },
    "api-key": {
      describe: "API key of an organization that may verify and settle (default the published one of `up`)",
      placeholder: "KEY",
      env: "X402_API_KEY",
      example: testKeys.local.apiKey,
      read: readApiKey,
      fallback: testKeys.local.apiKey,
    },
    network: {
      describe: "where to pay (default the first that the facilitator lists)",
      placeholder: "NAME",
      example: "base-sepolia",
      read: readNetwork,
    },
    contract: {
      describe: "payTo of payments: the facilitator contract (known of `up`)",
      placeholder: "ADDRESS",
      example: "0xE840c40665589C44947F74dCBaE73d65B1df12cC",
      read: readAddress,
    },
    "payer-key": {
      describe:
        "private key of an account that pays 0.01 USDC for each scenario that settles; not needed by `up`",
      placeholder: "KEY",
      env: "PAYER_PRIVATE_KEY",
      environmentOnly: true,
      read: readPrivateKey,
    },
    filter: {
      describe: "run only scenarios whose names contain this, such as settle.v2 or insufficient_funds",
      placeholder: "NAME",
      example: "settle.v2",
      read: (text) => text,
      fallback: "",
    },
    junit: {
      describe: "write the report as JUnit XML to a file too",
      placeholder: "FILE",
      example: "conformance.xml",
      read: (text) => text,
    },
    json: flag("print the report as JSON"),
  },

  async run(values, { print }) {
    const { url, network, contract, filter, junit, json } = values;
    const apiKey = values["api-key"];
    const payerKey = values["payer-key"];
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
