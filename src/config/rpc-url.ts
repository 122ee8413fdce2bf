import type { NetworkName } from "../protocol/networks.ts";
import { ConfigurationError } from "../util/errors.ts";
import { readHttpUrl, readList } from "./values.ts";
import { type Environment, readVariable } from "./variable-reader.ts";
import { describeVariable, rpcVariableOf } from "./variables.ts";

/**
 * The first RPC URL of a network's variable.
 *
 * @param purpose what it is needed for: `to fork base`
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
