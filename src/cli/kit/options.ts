import { readAddress, readNetwork, readNetworks } from "../../config/values.ts";
import { type VariableName, variables } from "../../config/variables.ts";
import type { Address } from "../../protocol/hex.ts";
import { networkNames } from "../../protocol/networks.ts";
import type { Option } from "./command.ts";

/*
 * Options that several commands have.
 */

/** A flag: off unless it is given. */
export function flag(describe: string) {
  return { describe, read: () => true } satisfies Option<boolean>;
}

/** `--network` of commands that act on one network. */
export const networkOption = {
  describe: "on which network",
  placeholder: "NAME",
  example: "base",
  read: readNetwork,
  required: true,
} as const satisfies Option;

/** `--network` of commands that act on all networks unless one is named. */
export const onlyNetworkOption = {
  ...networkOption,
  describe: "only on this network",
  required: false,
} as const satisfies Option;

/** An account, as an address that is checked (EIP-55). */
export function addressOption(describe: string) {
  return {
    describe,
    placeholder: "ADDRESS",
    example: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
    read: readAddress,
  } as const satisfies Option;
}

/** An option in the place of a variable, which gives the value when the command line does not. */
export function variableOption<
  N extends VariableName,
  const M extends { placeholder: string } & Partial<Option>,
>(name: N, more: M) {
  const variable = variables[name];
  return { ...variable, describe: variable.summary, variable: name, ...more };
}

/** Where the `up` runs that a command acts on. */
export const urlOption = variableOption("X402_KIT_URL", { placeholder: "URL" });

/** Where the facilitator contract stands on local chains. */
export const contractOptions = {
  "contract-mainnet": variableOption("FACILITATOR_CONTRACT_MAINNET", {
    placeholder: "ADDRESS",
    describe: "facilitator contract address on base, optimism and polygon",
  }),
  "contract-testnet": variableOption("FACILITATOR_CONTRACT_TESTNET", {
    placeholder: "ADDRESS",
    describe: "facilitator contract address on base-sepolia and optimism-sepolia",
  }),
};

/** The two addresses by tier. */
export function contractsOf(values: {
  "contract-mainnet"?: Address | undefined;
  "contract-testnet"?: Address | undefined;
}) {
  return { mainnet: values["contract-mainnet"], testnet: values["contract-testnet"] };
}

/** Of a facilitator for tests, with chains or without: what it serves, where. */
export const localOptions = {
  networks: {
    describe: "these networks, separated by commas",
    placeholder: "NAMES",
    example: "base,polygon",
    read: readNetworks,
    default: networkNames.join(","),
  },
  port: variableOption("PORT", { placeholder: "PORT" }),
  host: variableOption("HOST", { placeholder: "ADDRESS" }),
  ...contractOptions,
};
