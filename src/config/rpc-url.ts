import type { ConfigurationProblem } from "../errors.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { InvalidValue, readHttpUrl, readList } from "./values.ts";
import type { Environment } from "./variable-reader.ts";
import { rpcVariableOf } from "./variables.ts";

/** Whether the variable of a network's RPC URLs is set. */
export const isRpcUrlSet = (env: Environment, network: NetworkName) =>
  (env[rpcVariableOf(network)]?.trim() ?? "") !== "";

/** The first RPC URL of a network's variable; notes what is wrong with it. */
export function readRpcUrl(
  network: NetworkName,
  env: Environment,
  problems: ConfigurationProblem[],
): string | undefined {
  const name = rpcVariableOf(network);
  const example = "https://…";
  if (!isRpcUrlSet(env, network)) {
    problems.push({ name, problem: `is needed to fork ${network}`, example });
    return undefined;
  }
  try {
    const [first] = readList("URL", readHttpUrl)(env[name] ?? "");
    return first;
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    problems.push({ name, problem: error.message, example });
    return undefined;
  }
}
