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
  /** The known networks: the built-in ones and those in NETWORKS_FILE. */
  networks: KnownNetworks;
  warnings: readonly ConfigurationProblem[];
  /** For commands that run other commands. */
  program: Program;
};

/** Marks a command that reads no secrets. Only such commands use a compile cache; see `kit/compile-cache.ts`. */
type Keyless = "keyless";

/** A command with a name of one word, or of two in a group. */
export type CommandEntry = readonly [
  name: string,
  summary: string,
  load: () => Promise<Command>,
  keyless: Keyless | undefined,
];

/** The whole program `x402-kit`. */
export type Program = {
  commands: readonly CommandEntry[];
  /** Runs a command line; returns the exit code. */
  main(args: readonly string[], terminal: Terminal): Promise<number>;
};

/** An option of a command: a flag or a value. If it is not given, it is false, the default, or undefined. */
export type Option<T = unknown> = {
  /** The description for `--help`, which adds the default and other details below. */
  describe: string;
  /** The value's placeholder in the help, such as PORT in `--port PORT`. Undefined for a flag. */
  placeholder?: string;
  /** True if the value is given without the option's name, in the order of such options: `fault base reset`. */
  positional?: boolean;
  /** True for a positional option that takes all remaining positional values. The text contains them, separated by NUL. */
  isList?: boolean;
  /** True if the option is everything after `--`, a command line. The text contains its words, separated by NUL. */
  isRest?: boolean;
  /** The variable that provides the value if the command line does not. */
  variable?: VariableName;
  /** Shown if a value is wrong or missing; if left out, the default is shown. */
  example?: string;
  /** Throws InvalidValue with the problem. `known` are the known networks. */
  read: (text: string, known?: KnownNetworks) => T;
  /** True if the option may be given without a value; the text is then empty. */
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
  /**
   * The variables that it reads besides those of its options. Secrets belong here, since other users of the machine can
   * see command lines.
   */
  variables?: readonly VariableName[];
  /** The meaning of its exit codes, for `--help`, if they say more than the common ones. */
  exitCodes?: string;
  /** The exit codes for a wrong command line and for other failures, if they differ from those of the error's code. */
  failureCodes?: { readonly usage: number; readonly failed: number };
  /** One line of advice for an incomplete configuration. */
  adviseOnConfiguration?: () => string;
  /** True if the file `.env` in the working directory counts as environment. */
  usesEnvFile?: boolean;
  /** True if it shows the warnings of its {@link CommandTerminal} itself; otherwise they are printed on stderr. */
  showsWarnings?: boolean;
  /** Reads the environment; throws ConfigurationError with everything that is wrong. */
  environment?: (env: Environment, values: Partial<Values<O>>) => E;
  /** Checks that involve several values. A problem may be named after an option's variable. */
  check?: (values: Partial<Values<O>>) => readonly ConfigurationProblem[];
  /**
   * Returns the result to print, or the exit code if the command prints by itself. May throw the {@link Interruption}
   * that ended it early.
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
 * Defines a command so that `run` knows the types of its options' values. Every command has `--json`; one that prints
 * by itself defines its own.
 */
export function defineCommand<const O extends Options, E = undefined>(command: Command<O, E>): Command<O, E> {
  return { ...command, options: { ...command.options, json: command.options.json ?? flag("print JSON") } };
}

/** An option without a value. */
export function flag(describe: string) {
  return { describe, read: () => true } satisfies Option<boolean>;
}

/** The members of a value option, apart from its description and placeholder. */
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

/** The file with networks besides the built-in ones. It is read before all other options, which may name them. */
export const networkFileOption = {
  "network-file": variableOption("NETWORKS_FILE", {
    placeholder: "FILE",
    describe: "JSON file with networks besides the five",
  }),
};

/** The network with a name that {@link networkOption} has read. */
export function requireNetwork(networks: KnownNetworks, name: NetworkName): KnownNetwork {
  const network = networks.named(name);
  if (network === undefined) throw new Error(`${name} is not a network, although it was read as one`);
  return network;
}

/** The person who makes a change, for the audit trail. */
export const actorOption = textOption(
  "NAME",
  "who makes this change, for the audit trail (default the user of the operating system)",
  { example: "alice" },
);

/** `--network` for commands that act on one network. */
export const networkOption = option("NAME", "on which network", {
  read: readNetwork,
  example: "base",
  required: true,
});

/** The options for commands that act on one network, built in or from a network file. */
export const networkOptions = { network: networkOption, ...networkFileOption };

/** The options for commands that act on all networks unless one is named. */
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

/** An account's address, with its checksum verified (EIP-55). */
export function addressOption(describe: string) {
  return option("ADDRESS", describe, {
    read: readAddress,
    example: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
  });
}

export function requiredAddress(describe: string) {
  return { ...addressOption(describe), required: true } as const;
}

/** An option whose value comes from a variable if the command line does not give it. */
export function variableOption<
  N extends VariableName,
  const M extends { placeholder: string } & Partial<Option>,
>(name: N, more: M) {
  const variable = variables[name];
  return { ...variable, describe: variable.summary, variable: name, ...more };
}

/** The URL of the `up` that a command acts on. */
export const urlOption = variableOption("X402_KIT_URL", { placeholder: "URL" });

/** The token for the admin listener of a `serve`, if payments are read there. */
export const tokenOption = variableOption("ADMIN_TOKEN", {
  placeholder: "TOKEN",
  describe: "token of the admin listener, where --url is that of a `serve`",
});

/** Only the first address of the list: local chains have no former contracts. */
const readOfferedContract = (text: string) => readContractList(text)[0];

/** The facilitator contract's addresses on local chains. */
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

/** A facilitator's policy for the recipients of payments. */
export const payToOption = {
  "pay-to": option(
    "WHERE",
    "where payments may go: contract, to the facilitator contract alone (the default); recipients, also straight to the organization's own wallet; any, also straight to any other address, as public facilitators have it",
    { read: readOneOf(payToPolicies), example: "any" },
  ),
};

/** The networks and the address of a test facilitator, with or without chains. */
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

/** The option with which another command reaches the same `up`; empty for the default URL. */
export function atUrl(url: string): string {
  return url === variables.X402_KIT_URL.default ? "" : ` --url ${url}`;
}

type Named = { readonly name: string };

/**
 * `--cases` for commands that judge: parts of the names of the cases to run.
 *
 * @param known all cases; a part that none of their names contains is refused
 * @param kind the word for a case, for the error
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

/** The cases whose names contain one of the parts; all cases if no parts were given. */
export function chooseCases<C extends Named>(all: readonly C[], parts: readonly string[] | undefined): C[] {
  return parts === undefined ? [...all] : all.filter(({ name }) => parts.some((part) => name.includes(part)));
}
