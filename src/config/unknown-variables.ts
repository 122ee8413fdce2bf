import type { ConfigurationProblem } from "../errors.ts";
import { describeVariable, variableNames } from "./variables.ts";

/** How the names of variables begin that are ours, and of no other program. */
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

/** Kubernetes sets these for every service beside the own one, whatever it is called: `OPERATOR_PORT_80_TCP_ADDR`. */
const ofKubernetes =
  /_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;

/** A short name has many others a letter away: `HOST` is not what is meant by `HOSTS`. */
const shortestTypo = 8;
const mostTypos = 2;

/**
 * The variables that are set, are none of ours, and were probably meant to be: with a misspelt one, its default would
 * hold without a word.
 */
export function findUnknownVariables(
  env: Readonly<Record<string, string | undefined>>,
): ConfigurationProblem[] {
  const known = new Set(
    variableNames.flatMap((name) => [name, ...(describeVariable(name).secret ? [`${name}_FILE`] : [])]),
  );
  return Object.entries(env).flatMap(([name, text]) => {
    if (known.has(name) || (text?.trim() ?? "") === "" || ofKubernetes.test(name)) return [];
    const upper = name.toUpperCase().replaceAll("-", "_");
    const [nearest] = [...known]
      .map((one) => ({ name: one, distance: typosBetween(upper, one) }))
      .sort((a, b) => a.distance - b.distance);
    const isOurs = ownPrefixes.some((prefix) => upper.startsWith(prefix));
    const isTypo =
      nearest !== undefined && nearest.name.length >= shortestTypo && nearest.distance <= mostTypos;
    if (nearest === undefined || !(isOurs || isTypo)) return [];
    return [{ name, problem: `no such variable; did you mean ${nearest.name}?` }];
  });
}

/** How many letters must be added, dropped or changed to make one word of the other (Levenshtein). */
export function typosBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const changed = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
