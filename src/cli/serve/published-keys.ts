import { privateKeyToAddress } from "viem/accounts";
import type { ServeConfig } from "../../config/serve-config.ts";
import { ordinal } from "../../config/values.ts";
import type { ConfigurationProblem } from "../../errors.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { isPublishedKey, publishedKeys } from "../../published/accounts.ts";

/** What everybody can sign with must guard nothing. */
const publishedKey = "is a published test key: everybody can use it";

/** Which keys of a configuration everybody knows. */
export function findPublishedKeys({ operators, recovererKey }: ServeConfig): readonly ConfigurationProblem[] {
  const problems =
    operators.kind === "local"
      ? publishedAmong("OPERATOR_PRIVATE_KEY", "key", operators.privateKeys, isPublishedKey)
      : publishedAmong("OPERATOR_ADDRESS", "address", operators.addresses, isPublishedAddress);
  const recoverer = recovererKey === undefined ? [] : [recovererKey];
  return [...problems, ...publishedAmong("RECOVERER_PRIVATE_KEY", "key", recoverer, isPublishedKey)];
}

/** Whether an account is that of a key that everybody knows. */
export function isPublishedAddress(address: Address): boolean {
  return publishedKeys.some((key) => sameAddress(privateKeyToAddress(key), address));
}

function publishedAmong(
  name: string,
  what: string,
  values: readonly Hex[],
  isPublished: (value: Hex) => boolean,
): ConfigurationProblem[] {
  return values.flatMap((value, index) => {
    if (!isPublished(value)) return [];
    const which = values.length === 1 ? "" : `the ${ordinal(index)} ${what} `;
    return [{ name, problem: `${which}${publishedKey}`, example: "what `openssl rand -hex 32` prints" }];
  });
}
