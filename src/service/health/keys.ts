import { privateKeyToAddress } from "viem/accounts";
import type { ServeConfig } from "../../config/serve-config.ts";
import { ordinal } from "../../config/values.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { isPublishedKey, publishedKeys } from "../../published/accounts.ts";
import type { ConfigurationProblem } from "../../util/errors.ts";

const example = "what `openssl rand -hex 32` prints";

/** Finds keys that must not be used: published test keys, and one key for two purposes. */
export function findRefusedKeys(config: ServeConfig): readonly ConfigurationProblem[] {
  const { operators, recovererKey } = config;
  const recoverer = recovererKey === undefined ? [] : [recovererKey];
  return [
    ...(operators.kind === "local"
      ? findPublished("OPERATOR_PRIVATE_KEY", "key", operators.privateKeys, isPublishedKey)
      : findPublished("OPERATOR_ADDRESS", "address", operators.addresses, isPublishedAddress)),
    ...findPublished("RECOVERER_PRIVATE_KEY", "key", recoverer, isPublishedKey),
    ...findSharedRecoverer(config),
  ];
}

/** Whether an account belongs to a published test key. */
export function isPublishedAddress(address: Address): boolean {
  return publishedKeys.some((key) => sameAddress(privateKeyToAddress(key), address));
}

function findPublished(
  name: string,
  what: string,
  values: readonly Hex[],
  isPublished: (value: Hex) => boolean,
): ConfigurationProblem[] {
  return values.flatMap((value, index) => {
    if (!isPublished(value)) return [];
    const which = values.length === 1 ? "" : `the ${ordinal(index)} ${what} `;
    return [{ name, problem: `${which}is a published test key: anyone can sign with it`, example }];
  });
}

/** The configuration's parser compares local operator keys with the recoverer's; here, remote ones. */
function findSharedRecoverer({ operators, recovererKey }: ServeConfig): readonly ConfigurationProblem[] {
  if (recovererKey === undefined || operators.kind === "local") return [];
  const recoverer = privateKeyToAddress(recovererKey);
  if (!operators.addresses.some((address) => sameAddress(address, recoverer))) return [];
  const problem = `is the key of the operator ${recoverer}: one that leaks could then do both; use another`;
  return [{ name: "RECOVERER_PRIVATE_KEY", problem, example }];
}
