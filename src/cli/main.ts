import { ConfigurationError, type ConfigurationProblem, KitError } from "../errors.ts";
import { escapeControls } from "../util/escape-controls.ts";
import { kitVersion } from "../util/kit-version.ts";
import { findSlip } from "../util/nearest.ts";
import { self } from "../util/self-command.ts";
import type { Command } from "./kit/command.ts";
import { Interruption, type Terminal } from "./kit/terminal.ts";

/** A command of one word or, in a group, of two. */
type CommandEntry = readonly [name: string, summary: string, load: () => Promise<Command>];

const fault = () => import("./commands/fault.ts");
const org = () => import("./commands/org.ts");
const key = () => import("./commands/key.ts");
const operator = () => import("./commands/operator.ts");
const judge = () => import("./commands/judge.ts");
const settlements = () => import("./commands/settlements.ts");

/** The commands, each loaded when it is called: most of a start is imports. */
const commands: readonly CommandEntry[] = [
  [
    "up",
    "start local chains and the facilitator, and pay once on each network",
    async () => (await import("./up/up.ts")).up,
  ],
  [
    "mock",
    "start a mock facilitator without chains, which ends requests as it is told",
    async () => (await import("./commands/mock.ts")).mock,
  ],
  ["pay", "make one payment against a running `up`", async () => (await import("./commands/pay.ts")).pay],
  [
    "why",
    "explain a payment that a running `up` has seen: what is wrong, and what to do",
    async () => (await import("./commands/why.ts")).why,
  ],
  [
    "capture",
    "write a payment of a running `up` to a file, with the state of the chain that decided it",
    async () => (await import("./commands/capture.ts")).capture,
  ],
  [
    "replay",
    "judge a captured payment again, without any chain",
    async () => (await import("./commands/capture.ts")).replay,
  ],
  [
    "logs",
    "list the payments of a running `up`, and follow those that come",
    async () => (await import("./commands/logs.ts")).logs,
  ],
  [
    "fund",
    "give an account of a running `up` some of the token",
    async () => (await import("./commands/chains.ts")).fund,
  ],
  [
    "advance-time",
    "move the time of a chain of a running `up` forward",
    async () => (await import("./commands/chains.ts")).advanceTime,
  ],
  [
    "reset",
    "put a running `up` back to its start: chains and ledger",
    async () => (await import("./commands/chains.ts")).reset,
  ],
  [
    "fault",
    "make RPC or chain of a running `up` fail: lost answers, vanished blocks",
    async () => (await fault()).fault,
  ],
  [
    "fault list",
    "list the faults of a running `up`, and how often each has hit",
    async () => (await fault()).faultList,
  ],
  ["fault clear", "end the faults of a running `up`", async () => (await fault()).faultClear],
  [
    "fork record",
    "record a fork of a network, which then starts without the network",
    async () => (await import("./commands/fork.ts")).forkRecord,
  ],
  [
    "network",
    "read a token of any EVM chain, and print the network file that adds the chain",
    async () => (await import("./commands/network.ts")).network,
  ],
  [
    "explain",
    "say what is wrong with a payment header, a request body, a challenge or an answer",
    async () => (await import("./commands/explain.ts")).explainCommand,
  ],
  [
    "conformance",
    "run the scenarios against a facilitator, and report where its answers differ",
    async () => (await import("./commands/conformance.ts")).conformance,
  ],
  [
    "judge client",
    "run a client against shops that go wrong: does it ever pay twice, or for nothing?",
    async () => (await judge()).judgeClientCommand,
  ],
  [
    "judge shop",
    "let good and bad buyers loose on a shop: does it ever serve for nothing, or charge for it?",
    async () => (await judge()).judgeShopCommand,
  ],
  [
    "serve",
    "run the facilitator against real networks, as the environment says",
    async () => (await import("./serve/serve.ts")).serve,
  ],
  [
    "deploy",
    "deploy the facilitator contract, or grant and revoke its operators",
    async () => (await import("./deploy/deploy.ts")).deployCommand,
  ],
  [
    "doctor",
    "compare the configuration of `serve` with the chains and the database it names",
    async () => (await import("./doctor/doctor.ts")).doctor,
  ],
  [
    "migrate",
    "bring the database up to date",
    async () => (await import("./commands/migrate.ts")).migrateCommand,
  ],
  [
    "recover",
    "pay out payments that were submitted directly to the token",
    async () => (await import("./recover/recover.ts")).recover,
  ],
  [
    "stranded",
    "list what lies in the contract and no organization has claimed",
    async () => (await import("./recover/stranded.ts")).stranded,
  ],
  ["org create", "add an organization, whose payments are settled", async () => (await org()).orgCreate],
  ["org list", "list the organizations", async () => (await org()).orgList],
  ["org show", "show an organization, its keys, and who changed what", async () => (await org()).orgShow],
  [
    "org set-recipient",
    "set the wallet that an organization is paid to on a network",
    async () => (await org()).orgSetRecipient,
  ],
  [
    "org set-limits",
    "set the least amount and the gas budget of an organization on a network",
    async () => (await org()).orgSetLimits,
  ],
  ["key create", "issue an API key", async () => (await key()).keyCreate],
  ["key list", "list the API keys of an organization", async () => (await key()).keyList],
  [
    "key rotate",
    "issue an API key in the place of another, which works for some time yet",
    async () => (await key()).keyRotate,
  ],
  ["key revoke", "end an API key at once", async () => (await key()).keyRevoke],
  [
    "key accept-pepper",
    "make a new API_KEY_PEPPER that of the database, which ends the keys that the old one made",
    async () => (await key()).keyAcceptPepper,
  ],
  [
    "operator show",
    "show where an operator's transactions stand in the database, and who changed that",
    async () => (await operator()).operatorShow,
  ],
  [
    "operator accept-tx-nonce",
    "go on from the chain's txNonce, where others have sent with an operator's key",
    async () => (await operator()).operatorAcceptTxNonce,
  ],
  ["settlements list", "list settlements, also as CSV", async () => (await settlements()).settlementsList],
  [
    "completion",
    "print a script that has bash or zsh complete these commands",
    async () => {
      const { createCompletionCommand } = await import("./commands/completion.ts");
      return createCompletionCommand(async () =>
        Promise.all(
          commands.map(async ([name, , load]) => ({
            name,
            options: name === "completion" ? {} : (await load()).options,
          })),
        ),
      );
    },
  ],
  ["settlements show", "show a settlement", async () => (await settlements()).settlementsShow],
  [
    "settlements archive",
    "move old settlements out of the database into a file",
    async () => (await import("./archive/archive-settlements.ts")).settlementsArchive,
  ],
];

/** Runs `x402-kit` with the given arguments; gives the exit code. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const words = args[0] === "help" ? [...args.slice(1, 3), "--help"] : args;
  const [first] = words;
  if (first === undefined || isHelp(first)) {
    terminal.print(await describeCommands(commands));
    return 0;
  }
  if (first === "--version") {
    terminal.print(kitVersion());
    return 0;
  }
  const entry = findCommand(words);
  if (entry === undefined) return explainUnknown(words, terminal);
  const [name, summary, load] = entry;
  const rest = words.slice(name.split(" ").length);
  try {
    const command = await load();
    if (rest.slice(0, rest.includes("--") ? rest.indexOf("--") : undefined).some(isHelp)) {
      const { describeCommand } = await import("./kit/help.ts");
      terminal.print(describeCommand(name, summary, command));
      return 0;
    }
    return await run(command, rest, terminal);
  } catch (error) {
    if (error instanceof Interruption) return 130;
    if (isMisspelt(words, name, error)) return explainUnknown(words, terminal);
    // An argument that is repeated may hold what others wrote.
    terminal.printError(describeFailure(name, error).split("\n").map(escapeControls).join("\n"));
    return 1;
  }
}

async function run(command: Command, args: readonly string[], terminal: Terminal): Promise<number> {
  const { readCommandLine } = await import("./kit/command-line.ts");
  const warnings: ConfigurationProblem[] = [];
  if (command.usesEnvFile === true) {
    const { loadEnvFile } = await import("../config/env-file.ts");
    warnings.push(...loadEnvFile(terminal.env));
  }
  if (command.showsWarnings !== true) {
    for (const { name, problem } of warnings) terminal.printError(`warning: ${name}: ${problem}`);
  }
  const { values, environment, networks, env } = readCommandLine(command, args, terminal.env);
  return command.run(values, { ...terminal, env: { ...env }, networks, warnings }, environment);
}

function isHelp(word: string): boolean {
  return word === "--help" || word === "-h";
}

/** The command that the first words name, if there is one. */
function findCommand(words: readonly string[]): CommandEntry | undefined {
  const named = (count: number) => commands.find(([name]) => name === words.slice(0, count).join(" "));
  return named(2) ?? named(1);
}

/** Says what could have been meant. Asking for help about a group of commands is no mistake. */
async function explainUnknown(words: readonly string[], { print, printError }: Terminal): Promise<number> {
  const [first = "", second] = words;
  const group = commands.filter(([name]) => name.startsWith(`${first} `));
  if (group.length > 0 && second !== undefined && isHelp(second)) {
    print(await describeCommands(group));
    return 0;
  }
  const known = group.length === 0 ? commands : group;
  const tried = group.length === 0 || second === undefined ? first : `${first} ${second}`;
  const meant = findMeant(tried, known);
  const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
  const problem =
    group.length > 0 && second === undefined
      ? `"${first}" needs a second word`
      : `there is no command "${tried}"${hint}`;
  const more = group.length === 0 ? `The commands: ${self} --help` : await describeCommands(known);
  printError(`x402-kit: ${problem}\n\n${more}`);
  return 1;
}

/** The command that is near enough to be what was meant: the shorter the word, the fewer letters may differ. */
function findMeant(tried: string, known: readonly CommandEntry[]): string | undefined {
  const mostTypos = Math.min(2, Math.max(1, Math.floor(tried.length / 3)));
  const names = known.map(([name]) => name);
  return findSlip(tried, names, mostTypos);
}

/** Whether the second word, which could not be read as a value, is nearly that of a command: `fault lst`. */
function isMisspelt([first = "", second = ""]: readonly string[], name: string, error: unknown): boolean {
  if (first !== name || !(error instanceof ConfigurationError)) return false;
  const group = commands.filter(([other]) => other.startsWith(`${first} `));
  return (
    error.problems.some(({ problem }) => problem.startsWith(`"${second}" `)) &&
    findMeant(`${first} ${second}`, group) !== undefined
  );
}

async function describeCommands(some: readonly CommandEntry[]): Promise<string> {
  const { renderRows } = await import("../util/table.ts");
  return [
    "x402-kit: an x402 facilitator, and local chains to try it on",
    "",
    renderRows(some.map(([name, summary]) => [`x402-kit ${name}`, summary])),
    "",
    "Options of a command: x402-kit COMMAND --help",
  ].join("\n");
}

/** What went wrong, why, and what to do, for a person. Unforeseen errors keep their stack: they are ours to mend. */
function describeFailure(name: string, error: unknown): string {
  if (error instanceof ConfigurationError) {
    const count = error.problems.length;
    return [
      `x402-kit ${name}: ${count === 1 ? "one thing is" : `${count} things are`} wrong`,
      ...error.message.split("\n").map((line) => `  ${line}`),
      "",
      `Options: x402-kit ${name} --help`,
    ].join("\n");
  }
  if (!(error instanceof Error)) return `x402-kit ${name}: ${String(error)}`;
  if (!(error instanceof KitError)) return `x402-kit ${name}: unforeseen: ${error.stack ?? error.message}`;
  const causes = [];
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause) {
    if (cause.message !== "") causes.push(cause.message);
  }
  return [
    `x402-kit ${name}: ${error.message}`,
    ...causes.map((cause) => `  because: ${cause}`),
    ...error.hints.map((hint) => `  ${hint}`),
  ].join("\n");
}
