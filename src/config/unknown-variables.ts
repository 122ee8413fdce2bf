import type { ConfigurationProblem } from "../util/errors.ts";
import { nearest, typosBetween } from "../util/nearest.ts";
import { type AnyVariableName, describeVariable } from "./variables.ts";

/** Prefixes of names that only variables of this program have. */
const ownPrefixes = [
  "X402_KIT_",
  "FACILITATOR_CONTRACT",
  "OPERATOR_",
  "RECOVERER_",
  "DEPLOYER_",
  "RATE_LIMIT_",
  "METRICS_",
  "SETTLE_WAIT",
  "BASE_RPC",
  "BASE_SEPOLIA_RPC",
  "OPTIMISM_RPC",
  "OPTIMISM_SEPOLIA_RPC",
  "POLYGON_RPC",
];

/** Kubernetes sets such variables for every service of a namespace, by its name: `OPERATOR_PORT_80_TCP_ADDR`. */
const ofKubernetes =
  /_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;

/** A short name has many others a letter away: `HOST` is not what is meant by `HOSTS`. */
const shortestTypo = 8;
const mostTypos = 2;

/**
 * Finds variables that are set and unknown, and probably misspelt: instead of them, defaults would be used silently.
 */
export function findUnknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly AnyVariableName[],
): ConfigurationProblem[] {
  const known = new Set(
    names.flatMap((name) => [name, ...(describeVariable(name).secret ? [`${name}_FILE`] : [])]),
  );
  return Object.entries(env).flatMap(([name, text]) => {
    if (known.has(name) || (text?.trim() ?? "") === "" || ofKubernetes.test(name)) return [];
    const upper = name.toUpperCase().replaceAll("-", "_");
    const [meant = ""] = nearest(upper, [...known], 1);
    const isOurs = ownPrefixes.some((prefix) => upper.startsWith(prefix));
    const isTypo = meant.length >= shortestTypo && typosBetween(upper, meant) <= mostTypos;
    return isOurs || isTypo ? [{ name, problem: `no such variable; did you mean ${meant}?` }] : [];
  });
}
