import { createRequire } from "node:module";
import { KitError } from "../errors/base.ts";
import { ConfigurationError } from "../errors/configuration.ts";
import { type Command, Interruption, type Terminal } from "./command.ts";
import { type Options, readOptions } from "./options.ts";

type CommandEntry = { name: string; summary: string; load: () => Promise<Command> };

/** The commands, each loaded when it is called: most of a start is imports. */
const commands: readonly CommandEntry[] = [
  {
    name: "up",
    summary: "start local chains and the facilitator, and pay once on each network",
    load: async () => (await import("./up.ts")).up,
  },
  {
    name: "pay",
    summary: "make one payment against a running `up`",
    load: async () => (await import("./pay.ts")).pay,
  },
  {
    name: "fund",
    summary: "give an account of a running `up` some of the token",
    load: async () => (await import("./fund.ts")).fund,
  },
  {
    name: "serve",
    summary: "run the facilitator against real networks, as the environment says",
    load: async () => (await import("./serve.ts")).serve,
  },
  {
    name: "deploy",
    summary: "deploy the facilitator contract, or grant and revoke its operators",
    load: async () => (await import("./deploy.ts")).deploy,
  },
  {
    name: "doctor",
    summary: "compare the configuration of `serve` with the chains and the database it names",
    load: async () => (await import("./doctor.ts")).doctor,
  },
];

/** Runs `x402-kit` with the given arguments; gives the exit code. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args[0] === "help" ? [...args.slice(1, 2), "--help"] : args;
  if (name === undefined || name === "--help" || name === "-h") {
    terminal.print(describeCommands());
    return 0;
  }
  if (name === "--version") {
    terminal.print(readVersion());
    return 0;
  }
  const entry = commands.find((command) => command.name === name);
  if (entry === undefined) {
    terminal.complain(`x402-kit: there is no command "${name}"\n\n${describeCommands()}`);
    return 1;
  }
  try {
    const command = await entry.load();
    if (rest.includes("--help") || rest.includes("-h")) {
      terminal.print(describeCommand(entry, command.options));
      return 0;
    }
    return await command.run(readOptions(command.options, rest, terminal.env, command.check), terminal);
  } catch (error) {
    if (error instanceof Interruption) return 130;
    terminal.complain(describeFailure(name, error));
    return 1;
  }
}

function readVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)("../../package.json");
  const hasVersion = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return hasVersion ? String(manifest.version) : "unknown";
}

function describeCommands(): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    "x402-kit: an x402 facilitator, and local chains to try it on",
    "",
    ...commands.map(({ name, summary }) => `  x402-kit ${name.padEnd(width)}  ${summary}`),
    "",
    "Options of a command: x402-kit COMMAND --help",
  ].join("\n");
}

function describeCommand({ name, summary }: CommandEntry, options: Options): string {
  const rows = Object.entries(options).map(([option, { placeholder, describe, env, required }]) => ({
    left: `--${option}${placeholder === undefined ? "" : ` ${placeholder}`}`,
    right: [
      describe,
      ...(required ? ["(needed)"] : []),
      ...(env === undefined ? [] : [`[env: ${env}]`]),
    ].join(" "),
  }));
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
