import { privateKeyToAddress } from "viem/accounts";
import type { ServeConfig } from "../../config/serve-config.ts";
import type { ConfigurationProblem } from "../../errors.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { findPublishedKeys } from "./published-keys.ts";

/** Keys of a configuration that must not be used: those that everybody knows, and one for two purposes. */
export function findRefusedKeys(config: ServeConfig): readonly ConfigurationProblem[] {
  return [...findPublishedKeys(config), ...findSharedRecoverer(config)];
}

/** Where the operators' keys are known, configuration compares them already. */
function findSharedRecoverer({ operators, recovererKey }: ServeConfig): readonly ConfigurationProblem[] {
  if (recovererKey === undefined || operators.kind === "local") return [];
  const recoverer = privateKeyToAddress(recovererKey);
  if (!operators.addresses.some((address) => sameAddress(address, recoverer))) return [];
  const problem = `is the key of the operator ${recoverer}: one that leaks could then do both; use another`;
  return [{ name: "RECOVERER_PRIVATE_KEY", problem, example: "what `openssl rand -hex 32` prints" }];
}
