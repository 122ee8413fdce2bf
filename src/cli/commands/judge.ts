import { once } from "node:events";
import {
  InvalidValue,
  readHttpUrl,
  readList,
  readNetworks,
  readOneOf,
  readWholeNumber,
} from "../../config/values.ts";
import type { Environment } from "../../config/variable-reader.ts";
import { channelClientCases } from "../../judge/channels/channel-client-cases.ts";
import { channelShopCases } from "../../judge/channels/channel-shop-cases.ts";
import { clientCases } from "../../judge/client/client-cases.ts";
import { judgeClient } from "../../judge/client/judge-client.ts";
import { judgeExitCodesText, judgeFailureCodes } from "../../judge/frame/report.ts";
import type { Finding } from "../../judge/frame/run-cases.ts";
import { type JudgeOptions, type PurchaseFacts, reportPurchases } from "../../judge/scene/purchases.ts";
import { startCommand } from "../../judge/scene/run-command.ts";
import { judgeShop } from "../../judge/shop/judge-shop.ts";
import { shopCases } from "../../judge/shop/shop-cases.ts";
import { payableNamed, payableNames } from "../../methods/method-lists.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import {
  type CommandTerminal,
  casesOption,
  chooseCases,
  commandOption,
  defineCommand,
  flag,
  networkFileOption,
  option,
} from "../kit/command.ts";
import { type Failure, failureOf } from "../kit/failure.ts";
import { reportOptions, requireReportFiles, writeReport } from "../kit/report.ts";

const [usualWay = ""] = payableNames;

/** The longest default delay of the slow shop, in seconds; a longer one would reveal nothing more about a client. */
const mostSlow = 12;

/** The options of both judges, with the texts that differ. */
function commonOptions(own: { cases: readonly { name: string }[]; ways: string; timeout: string }) {
  return {
    network: option("NAMES", "on these networks, separated by commas, one after the other", {
      example: "base,polygon",
      read: readNetworks,
      default: "base-sepolia",
    }),
    ways: option("NAMES", `by these payment methods, of ${payableNames.join(", ")} (default: ${own.ways})`, {
      example: payableNames.join(),
      read: readList("payment method", readOneOf(payableNames)),
    }),
    timeout: option("SECONDS", own.timeout, { read: readWholeNumber(1, 600), default: "25" }),
    cases: casesOption(own.cases, {
      describe: "only cases whose names contain one of these, and the first",
      example: "plain",
      kind: "case",
    }),
    header: option("HEADER", "a header that every request has to carry", {
      example: '"Authorization: Bearer secret"',
      read: readHeader,
    }),
    seed: option("N", "which keys and goods are used: the same seed gives the same", {
      example: "7",
      read: readWholeNumber(0, 1_000_000_000),
      default: "1",
    }),
    studio: flag(
      "leave the chains and the studio running after the report, until Ctrl-C, with a link for each payment",
    ),
    ...reportOptions,
    ...networkFileOption,
  } as const;
}

/** The settings that both commands share besides their options. */
const judging = {
  exitCodes: judgeExitCodesText,
  failureCodes: judgeFailureCodes,
  environment: (env: Environment) => ({ networkFile: env.NETWORKS_FILE }),
} as const;

export const judgeClientCommand = defineCommand({
  ...judging,
  options: {
    command: { ...commandOption("the client, which buys what is at X402_URL"), required: true },
    v1: flag("the shop speaks protocol version 1 alone (without --v1 and --v2 both at once)"),
    v2: flag("the shop speaks protocol version 2 alone"),
    slow: option(
      "SECONDS",
      "how long the slow shop takes, in seconds (default: half of --timeout, and 12 at most)",
      { example: "12", read: readWholeNumber(1, 300) },
    ),
    ...commonOptions({
      cases: [...clientCases, ...channelClientCases],
      ways: usualWay,
      timeout: "how long the client may take in a case, in seconds",
    }),
  },
  check({ slow, timeout, studio, network = [], ways = [], v1, v2 }) {
    const isV1 = v1 === true && v2 !== true;
    const ofV2 = ways.filter((way) => !payableNamed(way).versions.includes(1));
    return [
      ...checkStudio(studio, network),
      // Each payment method has its own chains, which are closed before the next one starts.
      ...(studio === true && ways.length > 1
        ? [{ name: "--studio", problem: "goes with one payment method", example: `--ways ${ways[0]}` }]
        : []),
      ...(isV1 && ofV2.length > 0
        ? [{ name: "--ways", problem: `of protocol version 2: ${ofV2.join(", ")}`, example: "--v2" }]
        : []),
      ...(slow === undefined || timeout === undefined || slow < timeout
        ? []
        : [
            {
              name: "--slow",
              problem: `${slow} is not below --timeout, which is ${timeout}`,
              ...(timeout > 1 && { example: `${Math.floor(timeout / 2)}` }),
            },
          ]),
    ];
  },
  run(values, terminal, { networkFile }) {
    const { command = [], ways = [usualWay], v1, v2, slow, timeout, cases } = values;
    const versions = v1 === v2 ? ([1, 2] as const) : v1 ? ([1] as const) : ([2] as const);
    const own = {
      versions,
      ways,
      cases: withFirst(clientCases, cases),
      channelCases: withFirst(channelClientCases, cases),
      start: (env: Readonly<Record<string, string>>) => startCommand(command, env),
      slowMs: (slow ?? Math.min(mostSlow, timeout / 2)) * 1_000,
    };
    const judged = { name: "judge client", networkFile, subject: command.join(" ") };
    return runAndReport(values, terminal, judged, (common, beforeEnd) =>
      judgeClient({ ...common, ...own }, beforeEnd),
    );
  },
});

/** How long a transfer may come after the goods, for shops that settle after they have answered. */
const lateMs = 5_000;

export const judgeShopCommand = defineCommand({
  ...judging,
  options: {
    command: commandOption("starts the shop, which listens at PORT and uses X402_FACILITATOR_URL"),
    url: option("URL", "URL of a running shop's paid resource, instead of a command", {
      example: "http://127.0.0.1:3000/report",
      read: readHttpUrl,
    }),
    "other-url": option("URL", "another paid resource of that shop, for the same price", {
      example: "http://127.0.0.1:3000/other",
      read: readHttpUrl,
    }),
    "facilitator-port": option("PORT", "port on this machine where a running shop expects its facilitator", {
      read: readWholeNumber(1, 65_535),
      default: "4402",
    }),
    path: option("PATH", "path of a paid resource, for a shop that is started by a command", {
      read: readPath,
      default: "/report",
    }),
    "other-path": option("PATH", "path of another paid resource of that shop, for the same price", {
      read: readPath,
      default: "/other",
    }),
    redelivers: flag("the shop must deliver again when the same payment comes again"),
    ...commonOptions({
      cases: [...shopCases, ...channelShopCases],
      ways: "the shop's first offer",
      timeout: "how long the shop may take until its first answer, in seconds",
    }),
  },
  check({ command, url, studio, network = [] }) {
    return [
      ...checkStudio(studio, network),
      ...(url !== undefined && network.length > 1
        ? [{ name: "--network", problem: "with --url, is one network", example: "base" }]
        : []),
      ...(url !== undefined && command !== undefined
        ? [{ name: "--url", problem: "does not go with a command" }]
        : []),
      ...(url === undefined && command === undefined
        ? [
            {
              name: "--url",
              problem: "is needed, or a command that starts the shop",
              example: "-- node shop.js",
            },
          ]
        : []),
    ];
  },
  run(values, terminal, { networkFile }) {
    const { command = [], url, ways, redelivers, cases } = values;
    const own = {
      ways,
      redelivers,
      lateMs,
      cases: withFirst(shopCases, cases),
      channelCases: withFirst(channelShopCases, cases),
      shop:
        url === undefined
          ? { command, path: values.path, otherPath: values["other-path"] }
          : { url, otherUrl: values["other-url"], facilitatorPort: values["facilitator-port"] },
      onFacilitator(facilitatorUrl: string, apiKey: string) {
        if (url === undefined) return;
        terminal.printError(`The shop's facilitator is ${facilitatorUrl}, with the API key ${apiKey}`);
      },
    };
    const judged = { name: "judge shop", networkFile, subject: url ?? command.join(" ") };
    return runAndReport(values, terminal, judged, (common, beforeEnd) =>
      judgeShop({ ...common, ...own }, beforeEnd),
    );
  },
});

function checkStudio(studio: boolean | undefined, networks: readonly string[]) {
  return studio === true && networks.length > 1
    ? [{ name: "--studio", problem: "goes with one network", example: "--network base" }]
    : [];
}

type JudgeValues = Parameters<typeof writeReport>[1] & {
  network: readonly NetworkName[];
  header: JudgeOptions["header"];
  timeout: number;
  seed: number;
  studio: boolean;
};

type Findings = readonly Finding<PurchaseFacts>[];

/**
 * Runs the cases and reports the findings. With `--studio`, it reports before the chains end, and ends them on Ctrl-C.
 *
 * @throws the error that kept the program from being judged, after reporting it
 */
async function runAndReport(
  values: JudgeValues,
  { print, printError, takeSignals, networks: knownNetworks }: CommandTerminal,
  { name, networkFile, subject }: { name: string; networkFile: string | undefined; subject: string },
  judge: (common: JudgeOptions, beforeEnd: (findings: Findings) => Promise<void>) => Promise<Findings>,
): Promise<number> {
  const { seed, studio, network: networks, header, timeout } = values;
  requireReportFiles(values);
  const report = (findings: Findings, error?: Failure) => {
    const problem = error?.message;
    return writeReport(reportPurchases({ subject, networks, seed, findings, problem }), values, print, error);
  };
  const signal = takeSignals();
  let code: number | undefined;
  let findings: Findings;
  try {
    const scene = { knownNetworks, networkFile, studio, signal };
    const common = { ...scene, networks, header, seed, timeoutMs: timeout * 1_000 };
    findings = await judge(common, async (soFar) => {
      if (!studio) return;
      code = await report(soFar);
      printError("The chains and the studio run until Ctrl-C.");
      if (!signal.aborted) await once(signal, "abort");
    });
  } catch (error) {
    if (error instanceof KitError) await report([], failureOf(error, name, undefined));
    throw error;
  }
  return code ?? report(findings);
}

function readPath(text: string): string {
  if (!text.startsWith("/")) throw new InvalidValue("does not begin with /");
  return text;
}

/** The cases with these names, plus the first, which always runs: if it fails, the others say nothing. */
function withFirst<C extends { name: string }>(all: readonly C[], names: readonly string[] | undefined): C[] {
  const chosen = chooseCases(all, names);
  return all.filter((tested, index) => index === 0 || chosen.includes(tested));
}

function readHeader(text: string): { name: string; value: string } {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*([\x20-\x7e]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidValue("is not of the form NAME: VALUE");
  return { name, value };
}
