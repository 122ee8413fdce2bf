import type { NetworkName } from "../protocol/networks.ts";
import { ConfigurationError, type ConfigurationProblem } from "../util/errors.ts";
import { quote } from "../util/text.ts";
import {
  type ByNetwork,
  InvalidValue,
  readHttpUrl,
  readList,
  readPerNetwork,
  readWholeNumber,
} from "./values.ts";
import { type Environment, readVariable } from "./variable-reader.ts";
import { describeVariable, rpcVariableOf } from "./variables.ts";

const readPort = readWholeNumber(1, 65_535);

/** Reads `--rpc-port`: `base=8545,polygon=8546`. */
export const readRpcPorts = readPerNetwork(readPort);

/** Reads `--rpc-ports`: `8545..`, the port of the first network; the others follow. */
export function readFirstRpcPort(text: string): number {
  const [, port] = /^(\d+)\.\.$/.exec(text) ?? [];
  if (port === undefined)
    throw new InvalidValue(`${quote(text)} is not a first port followed by two dots, such as 8545..`);
  return readPort(port);
}

/** Returns a problem for each network in an option's values that is not started. */
export function checkNetworksOf(
  option: string,
  values: ByNetwork<unknown> | undefined,
  started: readonly NetworkName[] | undefined,
): readonly ConfigurationProblem[] {
  if (values === undefined || started === undefined) return [];
  return Object.keys(values)
    .filter((name) => !started.some((known) => known === name))
    .map((name) => ({
      name: `--${option}`,
      problem: `${name} is not started; started: ${started.join(", ")}`,
    }));
}

/** Returns the port of each network's node: the named ones, and for the others, in order, those from `first` on. */
export function assignRpcPorts(
  started: readonly NetworkName[],
  named: ByNetwork<number> = {},
  first: number | undefined,
): ByNetwork<number> {
  if (first === undefined) return named;
  return { ...Object.fromEntries(started.map((name, index) => [name, first + index])), ...named };
}

/**
 * Returns the first RPC URL of a network's variable.
 *
 * @param purpose what the URL is needed for: `to fork base`
 * @throws {ConfigurationError} when the variable is not set, or not to URLs
 */
export function readRpcUrl(network: NetworkName, env: Environment, purpose: string): string {
  const name = rpcVariableOf(network);
  const urls = readVariable(env, name, readList("URL", readHttpUrl)) ?? {
    problem: { name, problem: `is needed ${purpose}`, example: describeVariable(name).example },
  };
  if ("problem" in urls) throw new ConfigurationError([urls.problem]);
  return urls.value[0];
}
