import type { NetworkName } from "../protocol/networks.ts";
import type { ConfigurationProblem } from "../util/errors.ts";
import { quote } from "../util/show-value.ts";
import { type ByNetwork, InvalidValue, readPerNetwork, readWholeNumber } from "./values.ts";

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

/** What is wrong with options that name networks, of which not all are started. */
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

/** The port of each network's node: those that are named, and from the first port on for the others, in their order. */
export function assignRpcPorts(
  started: readonly NetworkName[],
  named: ByNetwork<number> = {},
  first: number | undefined,
): ByNetwork<number> {
  if (first === undefined) return named;
  return { ...Object.fromEntries(started.map((name, index) => [name, first + index])), ...named };
}
