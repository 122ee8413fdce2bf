import { InvalidValue, readList, readNetworks, readWholeNumber } from "../../config/values.ts";
import { KitError } from "../../errors.ts";
import { clientCases } from "../../judge/client/client-cases.ts";
import { judgeClient } from "../../judge/client/judge-client.ts";
import { reportClient } from "../../judge/report/client-report.ts";
import { nearest } from "../../util/nearest.ts";
import { commandOption, defineCommand, flag } from "../kit/command.ts";
import { renderJudgment } from "./judge-report.ts";

const common = {
  timeout: {
    describe: "how long the command may take in a case, in seconds",
    placeholder: "SECONDS",
    example: "30",
    read: readWholeNumber(1, 600),
    default: "30",
  },
  cases: {
    describe: "only cases whose names contain one of these",
    placeholder: "NAMES",
    example: "reset,parallel",
    read: readList("name", (text) => text),
  },
  header: {
    describe: "a header that every request has to carry",
    placeholder: "HEADER",
    example: '"Authorization: Bearer secret"',
    read: readHeader,
  },
  seed: {
    describe: "which keys and goods are used: the same seed gives the same",
    placeholder: "N",
    example: "7",
    read: readWholeNumber(0, 1_000_000_000),
    default: "1",
  },
  json: flag("print the report as JSON"),
} as const;

export const judgeClientCommand = defineCommand({
  options: {
    command: { ...commandOption("the client, which buys what is at X402_URL"), required: true },
    networks: {
      describe: "on these networks, separated by commas, one after the other",
      placeholder: "NAMES",
      example: "base,polygon",
      read: readNetworks,
      default: "base-sepolia",
    },
    v1: flag("the shop speaks protocol version 1 alone (without --v1 and --v2 both at once)"),
    v2: flag("the shop speaks protocol version 2 alone"),
    slow: {
      describe: "how long the slow shop takes, in seconds",
      placeholder: "SECONDS",
      example: "12",
      read: readWholeNumber(1, 300),
      default: "12",
    },
    ...common,
  },
  check({ slow, timeout }) {
    if (slow === undefined || timeout === undefined || slow < timeout) return [];
    return [{ name: "--slow", problem: `is not below --timeout (${timeout})`, example: "12" }];
  },
  async run(values, { print, takeSignals }) {
    const { command = [], networks, v1, v2, slow, timeout, cases, header, seed, json } = values;
    const versions = v1 === v2 ? ([1, 2] as const) : v1 ? ([1] as const) : ([2] as const);
    const results = await judgeClient({
      command,
      networks,
      versions,
      header,
      seed,
      cases: chooseCases(clientCases, cases),
      timeoutMs: timeout * 1_000,
      slowMs: slow * 1_000,
      signal: takeSignals(),
    });
    const findings = reportClient(results);
    const title = `${command.join(" ")} on ${networks.join(", ")}`;
    print(json ? JSON.stringify({ command, seed, findings }) : renderJudgment(title, findings, seed));
    return findings.every(({ isGood }) => isGood) ? 0 : 1;
  },
});

/** The cases of these names, after the first, which always runs. */
function chooseCases<C extends { name: string }>(
  all: readonly C[],
  names: readonly string[] | undefined,
): C[] {
  if (names === undefined) return [...all];
  const known = all.map(({ name }) => name);
  const unknown = names.find((name) => !known.some((one) => one.includes(name)));
  if (unknown !== undefined) {
    throw new KitError(`No case's name contains "${unknown}"`, {
      hints: [`The nearest are ${nearest(unknown, known, 3).join(", ")}`],
    });
  }
  return all.filter(({ name }, index) => index === 0 || names.some((part) => name.includes(part)));
}

function readHeader(text: string): { name: string; value: string } {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*([\x20-\x7e]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidValue("is not of the form NAME: VALUE");
  return { name, value };
}
