import type { KnownNetwork, KnownNetworks } from "../../config/known-networks.ts";
import {
  InvalidValue,
  readAddress,
  readContractList,
  readHostName,
  readList,
  readNetwork,
  readNetworks,
  readOneOf,
} from "../../config/values.ts";
import type { Environment } from "../../config/variable-reader.ts";
import { type VariableName, variables } from "../../config/variables.ts";
import { dialects } from "../../protocol/catalogue.ts";
import type { Address } from "../../protocol/hex.ts";
import { type NetworkName, networkNames } from "../../protocol/networks.ts";
import { payToPolicies } from "../../protocol/signed-payment.ts";
import type { ConfigurationProblem } from "../../util/errors.ts";
import { nearest } from "../../util/text.ts";
import type { Terminal } from "./terminal.ts";

/** The environment of a command. */
export type CommandTerminal = Terminal & {
  /** The networks that there are: the built-in ones, and those of NETWORKS_FILE. */
  networks: KnownNetworks;
  warnings: readonly ConfigurationProblem[];
  /** For a command that runs others. */
  program: Program;
};

/** Marks a command that reads no secret. The others never use a compile cache; see `kit/compile-cache.ts`. */
type Keyless = "keyless";

/** A command of one word or, in a group, of two. */
export type CommandEntry = readonly [
  name: string,
  summary: string,
  load: () => Promise<Command>,
  keyless: Keyless | undefined,
];

/** The whole of `x402-kit`. */
export type Program = {
  commands: readonly CommandEntry[];
  /** Runs it with the given arguments; returns the exit code. */
  main(args: readonly string[], terminal: Terminal): Promise<number>;
};

/** One option of a command: a flag, or a value. What is not given is false, or the default, or undefined. */
export type Option<T = unknown> = {
  /** Its description for `--help`, where the default and the members below are added. */
  describe: string;
  /** How a value is shown in the help: `--port PORT`. Undefined for a flag. */
  placeholder?: string;
  /** True if the value is given without the option's name, in the order of such options: `fault base reset`. */
  positional?: boolean;
  /** True of a positional one that takes all values from its own on. The text holds them, separated by NUL. */
  isList?: boolean;
  /** True if it is everything after `--`, a command line. The text holds its words, separated by NUL. */
  isRest?: boolean;
  /** The variable that gives the value when the command line does not. */
  variable?: VariableName;
  /** Shown where a value is wrong or missing; the default where that does. */
  example?: string;
  /** Throws InvalidValue with what is wrong. `known` are the networks that there are. */
  read: (text: string, known?: KnownNetworks) => T;
  /** True if it may be given without a value; the text is then empty. */
  mayBeBare?: boolean;
  required?: boolean;
  /** The default, written as on a command line. */
  default?: string;
};

/** The options of a command, by their long names without dashes. */
export type Options = Readonly<Record<string, Option>>;

/** The values of the options, from the command line and the environment. */
export type Values<O extends Options> = { [K in keyof O]: ValueOf<O[K]> };

type ValueOf<O extends Option> = O extends { placeholder: string }
  ? ReturnType<O["read"]> | (O extends { required: true } | { default: string } ? never : undefined)
  : boolean;

/** One command of `x402-kit`. */
export type Command<O extends Options = Options, E = unknown> = {
  options: O;
  /** The variables that it reads besides those of its options, since every user of the machine can see command lines. */
  variables?: readonly VariableName[];
  /** The meaning of its exit codes, for `--help`, if they say more than those of all commands. */
  exitCodes?: string;
  /** The exit codes for a wrong command line and for other failures, if not those of the error's code. */
  failureCodes?: { readonly usage: number; readonly failed: number };
  /** The advice if its configuration lacks something, in a line. */
  adviseOnConfiguration?: () => string;
  /** True if the file `.env` of the working directory counts as environment. */
  usesEnvFile?: boolean;
  /** It shows the warnings of its {@link CommandTerminal} itself; otherwise they are printed on stderr. */
  showsWarnings?: boolean;
  /** Reads the environment; throws ConfigurationError with everything that is wrong. */
  environment?: (env: Environment, values: Partial<Values<O>>) => E;
  /** Checks that need several values at once. A problem may be named after an option's variable. */
  check?: (values: Partial<Values<O>>) => readonly ConfigurationProblem[];
  /**
   * Gives what is to be printed, or the exit code of a command that prints by itself. May throw the {@link Interruption} that cut
   * it short.
   */
  run(values: Values<O>, terminal: CommandTerminal, environment: E): Promise<number | Outcome>;
};

/** The result of a command: printed as text for people or, with `--json`, as one line of JSON. */
export type Outcome = {
  text: string;
  json: unknown;
  /** The exit code; 0 by default. */
  code?: number;
};

/**
 * Names a command together with its options, so that `run` knows the types of their values. Every command has `--json`; one that
 * prints by itself defines its own.
 */
export function defineCommand<const O extends Options, E = undefined>(command: Command<O, E>): Command<O, E> {
  return { ...command, options: { ...command.options, json: command.options.json ?? flag("print JSON") } };
}

/** A flag: off unless it is given. */
export function flag(describe: string) {
  return { describe, read: () => true } satisfies Option<boolean>;
}

/** The members of an option with a value besides its name and placeholder. */
type OptionDetails = Omit<Partial<Option>, "placeholder" | "describe">;

/** An option with a value, such as `--port PORT`. */
export function option<const D extends OptionDetails & Pick<Option, "read">>(
  placeholder: string,
  describe: string,
  details: D,
): NoInfer<D> & { placeholder: string; describe: string } {
  return { ...details, placeholder, describe };
}

/** An option whose value may be any text. */
export function textOption<const D extends OptionDetails>(placeholder: string, describe: string, details: D) {
  return option(placeholder, describe, { ...details, read: (text: string) => text });
}

/** How users write an option. */
export function formatOption(name: string, option: Option | undefined): string {
  if (option?.isRest === true) return `-- ${option.placeholder}`;
  return option?.positional === true ? (option.placeholder ?? name) : `--${name}`;
}

/** Networks besides the built-in ones. It is read before all other options, which may name them. */
export const networkFileOption = {
  "network-file": variableOption("NETWORKS_FILE", {
    placeholder: "FILE",
    describe: "JSON file with networks besides the five",
  }),
};

/** The network of a name that {@link networkOption} has read. */
export function requireNetwork(networks: KnownNetworks, name: NetworkName): KnownNetwork {
  const network = networks.named(name);
  if (network === undefined) throw new Error(`${name} is not a network, although it was read as one`);
  return network;
}

/** Who makes a change, for the audit trail. */
export const actorOption = textOption(
  "NAME",
  "who makes this change, for the audit trail (default the user of the operating system)",
  { example: "alice" },
);

/** `--network` of commands that act on one network. */
export const networkOption = option("NAME", "on which network", {
  read: readNetwork,
  example: "base",
  required: true,
});

/** The network of commands that act on one, built in or of a network file. */
export const networkOptions = { network: networkOption, ...networkFileOption };

/** The network of commands that act on all networks unless one is named. */
export const onlyNetworkOptions = {
  network: option("NAME", "only on this network", { read: readNetwork, example: "base" }),
  ...networkFileOption,
};

/** A command line after `--`. */
export function commandOption(describe: string) {
  return {
    describe,
    placeholder: "COMMAND…",
    isRest: true,
    example: "node buyer.js",
    read: (text: string): readonly string[] => text.split("\0"),
  } as const satisfies Option;
}

/** An account, as an address that is checked (EIP-55). */
export function addressOption(describe: string) {
  return option("ADDRESS", describe, {
    read: readAddress,
    example: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
  });
}

export function requiredAddress(describe: string) {
  return { ...addressOption(describe), required: true } as const;
}

/** An option whose value is that of a variable when the command line does not give it. */
export function variableOption<
  N extends VariableName,
  const M extends { placeholder: string } & Partial<Option>,
>(name: N, more: M) {
  const variable = variables[name];
  return { ...variable, describe: variable.summary, variable: name, ...more };
}

/** Where the `up` runs that a command acts on. */
export const urlOption = variableOption("X402_KIT_URL", { placeholder: "URL" });

/** The token for the admin listener of a `serve`, if payments are read from there. */
export const tokenOption = variableOption("ADMIN_TOKEN", {
  placeholder: "TOKEN",
  describe: "token of the admin listener, where --url is that of a `serve`",
});

/** Local chains have no former contracts. */
const readOfferedContract = (text: string) => readContractList(text)[0];

/** Where the facilitator contract stands on local chains. */
export const contractOptions = {
  "contract-mainnet": variableOption("FACILITATOR_CONTRACT_MAINNET", {
    placeholder: "ADDRESS",
    read: readOfferedContract,
    describe: "facilitator contract address on base, optimism and polygon",
  }),
  "contract-testnet": variableOption("FACILITATOR_CONTRACT_TESTNET", {
    placeholder: "ADDRESS",
    read: readOfferedContract,
    describe: "facilitator contract address on base-sepolia and optimism-sepolia",
  }),
};

export function contractsOf(values: {
  "contract-mainnet"?: Address | undefined;
  "contract-testnet"?: Address | undefined;
}) {
  return { mainnet: values["contract-mainnet"], testnet: values["contract-testnet"] };
}

/** Where a facilitator lets payments go. */
export const payToOption = {
  "pay-to": option(
    "WHERE",
    "where payments may go: contract, to the facilitator contract alone (the default); recipients, also straight to the organization's own wallet; any, also straight to any other address, as public facilitators have it",
    { read: readOneOf(payToPolicies), example: "any" },
  ),
};

/** The served networks and the address of a test facilitator, with chains or without. */
export const localOptions = {
  networks: option("NAMES", "these networks, separated by commas", {
    read: readNetworks,
    example: "base,polygon",
    default: networkNames.join(","),
  }),
  port: variableOption("PORT", { placeholder: "PORT" }),
  host: variableOption("HOST", { placeholder: "ADDRESS" }),
  "allow-host": option(
    "NAMES",
    "answer requests to these host names too, separated by commas, such as a container's",
    { read: readList("host name", readHostName), example: "facilitator" },
  ),
  ...contractOptions,
  ...payToOption,
  reasons: option(
    "DIALECT",
    "the names that invalidReason and errorReason have: spec, the specification's (the default); reference, those of the public reference facilitator",
    { read: readOneOf(dialects), example: "reference" },
  ),
  ...networkFileOption,
  "cors-origins": variableOption("CORS_ORIGINS", { placeholder: "ORIGINS" }),
  discovery: flag(
    "keep what the organization was paid for, and show it at /discovery/resources, as `serve` with DISCOVERY=true",
  ),
};

/** The option with which another command reaches the same `up`; nothing at the usual address. */
export function atUrl(url: string): string {
  return url === variables.X402_KIT_URL.default ? "" : ` --url ${url}`;
}

type Named = { readonly name: string };

/**
 * `--cases` of commands that judge: parts of the names of what is to run.
 *
 * @param known everything that can run; a part that none of their names contains is refused
 * @param kind what one of them is called
 */
export function casesOption(
  known: readonly Named[],
  { describe, example, kind }: { describe: string; example: string; kind: string },
) {
  return option("NAMES", describe, {
    example,
    read: readList("name", (text) => {
      if (known.some(({ name }) => name.includes(text))) return text;
      const names = known.map(({ name }) => name);
      const problem = `no ${kind}'s name contains "${text}"; the nearest are ${nearest(text, names, 3).join(", ")}`;
      throw new InvalidValue(problem);
    }),
  });
}

/** Those whose names contain one of the parts; all where none were given. */
export function chooseCases<C extends Named>(all: readonly C[], parts: readonly string[] | undefined): C[] {
  return parts === undefined ? [...all] : all.filter(({ name }) => parts.some((part) => name.includes(part)));
}
