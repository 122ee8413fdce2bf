import { writeFile } from "node:fs/promises";
import { readFacilitatorUrl, readNetwork } from "../../config/values.ts";
import { createVariableReader } from "../../config/variable-reader.ts";
import { variables } from "../../config/variables.ts";
import { type FoundFacilitator, findFacilitator } from "../../conformance/find-facilitator.ts";
import { renderJunit } from "../../conformance/junit.ts";
import { describeResults, groupOf, tally } from "../../conformance/report.ts";
import { type ConformanceResult, runConformance } from "../../conformance/run-conformance.ts";
import { ConfigurationError, KitError } from "../../errors.ts";
import { scenarios } from "../../fixtures/cases/scenarios.ts";
import type { Difference } from "../../fixtures/engine/answer.ts";
import { testKeys } from "../../published/test-keys.ts";
import { nearest } from "../../util/nearest.ts";
import {
  addressOption,
  defineCommand,
  flag,
  textOption,
  valueOption,
  variableOption,
} from "../kit/command.ts";
import { renderTable, wrapText } from "../kit/terminal.ts";

const url = variables.X402_KIT_URL.default;

export const conformance = defineCommand({
  options: {
    url: {
      ...valueOption(
        "where the facilitator is: by default, that of a running `up`",
        "URL",
        url,
        readFacilitatorUrl,
      ),
      default: url,
    },
    "api-key": variableOption("X402_API_KEY", { placeholder: "KEY", example: testKeys.local.apiKey }),
    network: valueOption(
      "where to pay (default: the first that the facilitator lists)",
      "NAME",
      "base-sepolia",
      readNetwork,
    ),
    contract: addressOption("payTo of payments: the facilitator contract (that of `up` is known)"),
    filter: {
      ...textOption(
        "run only scenarios whose names contain this, such as settle.v2 or insufficient_funds",
        "NAME",
        "settle.v2",
      ),
      default: "",
    },
    junit: textOption("write the report as JUnit XML to a file too", "FILE", "conformance.xml"),
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

/** An answer of another kind differs everywhere; the first places say enough. */
const mostDifferences = 6;

/** More failures are one mistake in many places: of the others only the names are shown. */
const mostFailures = 20;

/** Longer than any sentence of the service. */
const mostCharacters = 300;

/** The report for a person: a table by what the answers are, then each failure, then what was not run and why. */
function renderConformance(
  { baseUrl, environment, isKit }: FoundFacilitator,
  results: readonly ConformanceResult[],
): string {
  const { passed, failed, not_run } = tally(results);
  const compared = isKit
    ? "headers and bodies, to the letter"
    : "status, verdict and reason; messages and headers are its own";
  const groups = [...Map.groupBy(results, groupOf)].map(([group, ofGroup]) => {
    const counted = tally(ofGroup);
    return [group, ...[counted.passed, counted.failed, counted.not_run].map(String)];
  });
  const failures = results.filter((result) => result.outcome === "failed");
  const skipped = Map.groupBy(
    results.filter((result) => result.outcome === "not_run"),
    ({ why }) => why,
  );
  return [
    `Conformance of ${baseUrl}/v1 on ${environment.network.name}`,
    `Compared: ${compared}`,
    "",
    renderTable(
      ["scenarios", { right: "passed" }, { right: "failed" }, { right: "not run" }],
      [...groups, ["all", `${passed}`, `${failed}`, `${not_run}`]],
    ),
    ...(failures.length === 0
      ? []
      : ["", "Failed", ...failures.slice(0, mostFailures).flatMap(renderFailure)]),
    ...failures.slice(mostFailures).map(({ scenario }) => `  ${scenario.name}`),
    ...(skipped.size === 0 ? [] : ["", "Not run"]),
    ...[...skipped].flatMap(([why, ofWhy]) => renderObstacle(why, ofWhy)),
    "",
    summarize({ passed, failed, not_run }),
    ...(failures.length > 0 && failures.every(isUnauthorized)
      ? ["Every failure is a 401. Is the API key one of this facilitator? Set X402_API_KEY."]
      : []),
  ].join("\n");
}

function renderFailure(result: Extract<ConformanceResult, { outcome: "failed" }>): string[] {
  const { scenario, differences } = result;
  const more = differences.length - mostDifferences;
  return [
    `  ${scenario.name}`,
    `    ${scenario.means}`,
    ...differences.slice(0, mostDifferences).flatMap(renderDifference),
    ...(more > 0 ? [`      and ${more} more`] : []),
  ];
}

function isUnauthorized({ differences }: Extract<ConformanceResult, { outcome: "failed" }>): boolean {
  return differences.some(({ at, got }) => at === "status" && got === "401");
}

function renderObstacle(why: string, results: readonly Extract<ConformanceResult, { outcome: "not_run" }>[]) {
  const lacking = [...new Set(results.flatMap(({ lacking }) => lacking ?? []))];
  const reason = lacking.length === 0 ? why : `${why}: ${lacking.join(", ")}`;
  const [first = "", ...others] = wrapText(reason, 72);
  return [`  ${`${results.length}`.padStart(4)}  ${first}`, ...others.map((line) => `        ${line}`)];
}

function renderDifference({ at, expected, got }: Difference): string[] {
  // The names of members are the facilitator's, and so may be what a terminal acts on.
  return [
    `      ${at.replace(/\p{Cc}/gu, "�")}`,
    `        - ${shorten(expected)}`,
    `        + ${shorten(got)}`,
  ];
}

function shorten(text: string): string {
  return text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text;
}

function summarize({ passed, failed, not_run }: ReturnType<typeof tally>): string {
  if (passed + failed === 0) return "Nothing was run.";
  const others = not_run === 0 ? "" : ` ${not_run} could not be run.`;
  if (failed === 0) return `All ${passed} scenarios passed.${others}`;
  return `${failed} of ${passed + failed} scenarios failed (- expected, + got).${others}`;
}
