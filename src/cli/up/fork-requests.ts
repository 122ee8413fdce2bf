import { readRpcUrl } from "../../config/rpc-ports.ts";
import { InvalidValue, readNetwork } from "../../config/values.ts";
import { isVariableSet } from "../../config/variable-reader.ts";
import { rpcVariableOf } from "../../config/variables.ts";
import type { ForkOption, ForkOptions } from "../../harness/fork/fork-options.ts";
import type { NetworkName, NetworkRegistry } from "../../protocol/networks.ts";
import { ConfigurationError, type ConfigurationProblem, collectProblems } from "../../util/errors.ts";

/**
 * What `--fork` asks for: a source for a network, or undefined where the network's variable names it; "all" whose
 * variables are set; undefined without `--fork`.
 */
export type ForkRequests = ReadonlyMap<NetworkName, ForkOption | undefined> | "all" | undefined;

/** Reads `--fork`: bare, `base,polygon`, `base=https://…`, or `base=FILE`. Its messages show no URL. */
export function readForkRequests(text: string, known?: NetworkRegistry): ForkRequests {
  if (text === "") return "all";
  const requests = new Map<NetworkName, ForkOption | undefined>();
  for (const part of text.split(",")) {
    const [, name = "", source] = /^([^=]*)(?:=(.*))?$/.exec(part.trim()) ?? [];
    if (/^https?:/i.test(name)) throw new InvalidValue("a URL needs the name of its network before it");
    const network = readNetwork(name, known);
    if (requests.has(network)) throw new InvalidValue(`names ${network} twice`);
    if (source === "") throw new InvalidValue(`has nothing after ${network}=`);
    requests.set(network, source === undefined ? undefined : readSource(source));
  }
  return requests;
}

function readSource(text: string): ForkOption {
  return /^[a-z]+:\/\//i.test(text) ? text : { recording: text };
}

/**
 * What the chains are forked from, with the URLs of the environment.
 *
 * @throws {ConfigurationError} when a network has no URL, or is not started
 */
export function resolveForks(
  requests: ForkRequests,
  networks: readonly NetworkName[],
  env: Readonly<Record<string, string | undefined>>,
): ForkOptions {
  if (requests === undefined) return {};
  const problems: ConfigurationProblem[] = [];
  const forks: { [N in NetworkName]?: ForkOption } = {};
  const asked =
    requests === "all"
      ? networks.filter((name) => isVariableSet(env, rpcVariableOf(name)))
      : [...requests.keys()];
  for (const network of asked) {
    if (!networks.includes(network)) {
      problems.push({
        name: "--fork",
        problem: `${network} is not started; started: ${networks.join(", ")}`,
      });
      continue;
    }
    const source = requests === "all" ? undefined : requests.get(network);
    const found = source ?? collectProblems(problems, () => readRpcUrl(network, env, `to fork ${network}`));
    if (found !== undefined) forks[network] = found;
  }
  if (asked.length === 0) {
    problems.push({
      name: "--fork",
      problem: "none of these networks has its RPC URL in the environment",
      example: `${rpcVariableOf(networks[0] ?? "base")}=https://…`,
    });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return forks;
}
