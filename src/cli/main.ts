import { createRequire } from "node:module";
import { ConfigurationError, type ConfigurationProblem, KitError } from "../errors.ts";
import { type Command, Interruption, type Terminal } from "./kit/command.ts";
import { formatOption, type Options, readOptions } from "./kit/options.ts";

/** A command of one word or, in a group, of two. */
type CommandEntry = { name: string; summary: string; load: () => Promise<Command> };

/** The commands, each loaded when it is called: most of a start is imports. */
const commands: readonly CommandEntry[] = [
  {
    name: "up",
    summary: "start local chains and the facilitator, and pay once on each network",
    load: async () => (await import("./up/up.ts")).up,
  },
  {
    name: "mock",
    summary: "start a mock facilitator without chains, which ends requests as it is told",
    load: async () => (await import("./commands/mock.ts")).mock,
  },
  {
    name: "pay",
    summary: "make one payment against a running `up`",
    load: async () => (await import("./commands/pay.ts")).payCommand,
  },
  {
    name: "fund",
    summary: "give an account of a running `up` some of the token",
    load: async () => (await import("./commands/fund.ts")).fund,
  },
  {
    name: "advance-time",
    summary: "move the time of a chain of a running `up` forward",
    load: async () => (await import("./commands/advance-time.ts")).advanceTime,
  },
  {
    name: "reset",
    summary: "put a running `up` back to its start: chains and ledger",
    load: async () => (await import("./commands/reset.ts")).reset,
  },
  {
    name: "fault",
    summary: "put a running `up` in trouble: RPC answers that get lost, blocks that vanish",
    load: async () => (await import("./commands/fault.ts")).fault,
  },
  {
    name: "fault list",
    summary: "list the faults of a running `up`, and how often each has hit",
    load: async () => (await import("./commands/fault-list.ts")).faultList,
  },
  {
    name: "fault clear",
    summary: "end the faults of a running `up`",
    load: async () => (await import("./commands/fault-clear.ts")).faultClear,
  },
  {
    name: "fork record",
    summary: "record a fork of a network, which then starts without the network",
    load: async () => (await import("./commands/fork-record.ts")).forkRecord,
  },
  {
    name: "explain",
    summary: "say what is wrong with a payment header, a request body, a challenge or an answer",
    load: async () => (await import("./commands/explain.ts")).explainCommand,
  },
  {
    name: "conformance",
    summary: "run the scenarios against a facilitator, and report where its answers differ",
    load: async () => (await import("./commands/conformance.ts")).conformance,
  },
  {
    name: "serve",
    summary: "run the facilitator against real networks, as the environment says",
    load: async () => (await import("./serve/serve.ts")).serve,
  },
  {
    name: "deploy",
    summary: "deploy the facilitator contract, or grant and revoke its operators",
    load: async () => (await import("./deploy/deploy.ts")).deployCommand,
  },
  {
    name: "doctor",
    summary: "compare the configuration of `serve` with the chains and the database it names",
    load: async () => (await import("./doctor/doctor.ts")).doctor,
  },
  {
    name: "migrate",
    summary: "bring the database up to date",
    load: async () => (await import("./commands/migrate.ts")).migrateCommand,
  },
  {
    name: "recover",
    summary: "pay out payments that somebody else submitted straight to the token",
    load: async () => (await import("./recover/recover.ts")).recover,
  },
  {
    name: "stranded",
    summary: "list what lies in the contract and is claimed by nobody",
    load: async () => (await import("./recover/stranded.ts")).stranded,
  },
  {
    name: "org create",
    summary: "add an organization, whose payments are settled",
    load: async () => (await import("./commands/org-create.ts")).orgCreate,
  },
  {
    name: "org list",
    summary: "list the organizations",
    load: async () => (await import("./commands/org-list.ts")).orgList,
  },
  {
    name: "org show",
    summary: "show an organization, its keys, and who changed what",
    load: async () => (await import("./commands/org-show.ts")).orgShow,
  },
  {
    name: "org set-recipient",
    summary: "set the wallet that an organization is paid to on a network",
    load: async () => (await import("./commands/org-set-recipient.ts")).orgSetRecipient,
  },
  {
    name: "org set-limits",
    summary: "set the least amount and the gas budget of an organization on a network",
    load: async () => (await import("./commands/org-set-limits.ts")).orgSetLimits,
  },
  {
    name: "key create",
    summary: "issue an API key",
    load: async () => (await import("./commands/key-create.ts")).keyCreate,
  },
  {
    name: "key list",
    summary: "list the API keys of an organization",
    load: async () => (await import("./commands/key-list.ts")).keyList,
  },
  {
    name: "key rotate",
    summary: "issue an API key in the place of another, which works for some time yet",
    load: async () => (await import("./commands/key-rotate.ts")).keyRotate,
  },
  {
    name: "key revoke",
    summary: "end an API key at once",
    load: async () => (await import("./commands/key-revoke.ts")).keyRevoke,
  },
  {
    name: "operator show",
    summary: "show where an operator's transactions stand in the database, and who changed that",
    load: async () => (await import("./commands/operator-show.ts")).operatorShow,
  },
  {
    name: "operator accept-tx-nonce",
    summary: "go on from the chain's txNonce, where others have sent with an operator's key",
    load: async () => (await import("./commands/operator-accept-tx-nonce.ts")).operatorAcceptTxNonce,
  },
  {
    name: "settlements list",
    summary: "list settlements, also as CSV",
    load: async () => (await import("./commands/settlements-list.ts")).settlementsList,
  },
  {
    name: "settlements show",
    summary: "show a settlement",
    load: async () => (await import("./commands/settlements-show.ts")).settlementsShow,
  },
];

/** Runs `x402-kit` with the given arguments; gives the exit code. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const words = args[0] === "help" ? [...args.slice(1, 3), "--help"] : args;
  const [first] = words;
  if (first === undefined || isHelp(first)) {
    terminal.print(describeCommands(commands));
    return 0;
  }
  if (first === "--version") {
    terminal.print(readVersion());
    return 0;
  }
  const entry = findCommand(words);
  if (entry === undefined) return explainUnknown(words, terminal);
  const { name } = entry;
  const rest = words.slice(name.split(" ").length);
  try {
    const command = await entry.load();
    if (rest.some(isHelp)) {
      terminal.print(describeCommand(entry, command.options));
      return 0;
    }
    const warnings: ConfigurationProblem[] = [];
    if (command.usesEnvFile === true) {
      const { loadEnvFile } = await import("../config/env-file.ts");
      warnings.push(...loadEnvFile(terminal.env));
    }
    if (command.showsWarnings !== true) {
      for (const { name, problem } of warnings) terminal.printError(`warning: ${name}: ${problem}`);
    }
    const values = readOptions(command.options, rest, terminal.env, command.check);
    return await command.run(values, { ...terminal, warnings });
  } catch (error) {
    if (error instanceof Interruption) return 130;
    terminal.printError(describeFailure(name, error));
    return 1;
  }
}

function isHelp(word: string): boolean {
  return word === "--help" || word === "-h";
}

/** The command that the first words name, if there is one. */
function findCommand(words: readonly string[]): CommandEntry | undefined {
  return [2, 1]
    .map((count) => words.slice(0, count).join(" "))
    .flatMap((name) => commands.find((command) => command.name === name) ?? [])[0];
}

/** Says what could have been meant. Asking for help about a group of commands is no mistake. */
function explainUnknown(words: readonly string[], { print, printError }: Terminal): number {
  const [first = "", second] = words;
  const group = commands.filter(({ name }) => name.startsWith(`${first} `));
  if (group.length === 0) {
    printError(`x402-kit: there is no command "${first}"\n\n${describeCommands(commands)}`);
    return 1;
  }
  if (second !== undefined && isHelp(second)) {
    print(describeCommands(group));
    return 0;
  }
  const problem =
    second === undefined ? `"${first}" needs a second word` : `there is no command "${first} ${second}"`;
  printError(`x402-kit: ${problem}\n\n${describeCommands(group)}`);
  return 1;
}

function readVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)("../../package.json");
  const hasVersion = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return hasVersion ? String(manifest.version) : "unknown";
}

function describeCommands(some: readonly CommandEntry[]): string {
  const width = Math.max(...some.map(({ name }) => name.length));
  return [
    "x402-kit: an x402 facilitator, and local chains to try it on",
    "",
    ...some.map(({ name, summary }) => `  x402-kit ${name.padEnd(width)}  ${summary}`),
    "",
    "Options of a command: x402-kit COMMAND --help",
  ].join("\n");
}

function describeCommand({ name, summary }: CommandEntry, options: Options): string {
  const rows = Object.entries(options).map(([name, option]) => {
    const { placeholder, describe, env, positional, ...rules } = option;
    const asVariable = rules.environmentOnly === true && env !== undefined;
    const shown = option.mayBeBare === true ? `[${placeholder}]` : placeholder;
    const value = positional === true || placeholder === undefined ? "" : ` ${shown}`;
    return {
      left: asVariable ? env : `${formatOption(name, option)}${value}`,
      right: [
        describe,
        ...(rules.required ? ["(needed)"] : []),
        ...(env === undefined || asVariable ? [] : [`[env: ${env}]`]),
      ].join(" "),
    };
  });
  const width = Math.max(...rows.map(({ left }) => left.length));
  return [
    `x402-kit ${name}: ${summary}`,
    "",
    ...rows.map(({ left, right }) => `  ${left.padEnd(width)}  ${right}`),
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
