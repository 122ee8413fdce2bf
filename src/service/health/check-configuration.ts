import { statfsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { privateKeyToAddress } from "viem/accounts";
import type { Signer } from "../../chain/signing/local-signer.ts";
import { isRecoveryNative } from "../../chain/signing/recover-signer.ts";
import type { ServeConfig } from "../../config/serve-config.ts";
import { ordinal } from "../../config/values.ts";
import { isPublishedKey, publishedKeys } from "../../payer/accounts.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { plural } from "../../protocol/token-units.ts";
import type { ConfigurationProblem } from "../../util/errors.ts";
import { type Check, type CheckStatus, ok, warning } from "./check.ts";
import { checkSigner } from "./check-operators.ts";

/** Checks a configuration without asking a chain, and tests remote signers. */
export async function checkConfiguration(
  config: ServeConfig,
  signers: readonly Signer[],
): Promise<readonly Check[]> {
  const { networks, operators, warnings } = config;
  const detail = `${plural(networks.length, "network")}, ${plural(signers.length, "operator")}`;
  const [network] = networks;
  const isRemote = operators.kind === "remote" && network !== undefined;
  const slowRecovery = checkSignatureRecovery();
  return [
    ok("variables", detail),
    ...findRefusedKeys(config).map((problem) => problemAsCheck(problem, "failed")),
    ...warnings.map((problem) => problemAsCheck(problem, "warning")),
    ...(slowRecovery === undefined ? [] : [slowRecovery]),
    ...(isRemote ? await Promise.all(signers.map((signer) => checkSigner(signer, network))) : []),
  ];
}

export function problemAsCheck({ name, problem, example }: ConfigurationProblem, status: CheckStatus): Check {
  return { name, status, detail: problem, ...(example && { advice: `For example ${example}` }) };
}

/** Warns if this installation recovers signers without the native library, since that is most of a verify's work. */
export function checkSignatureRecovery(isNative = isRecoveryNative()): Check | undefined {
  if (isNative) return undefined;
  return warning(
    "signatures",
    `are recovered in JavaScript, some 3 ms each instead of 0.1: the package secp256k1 has no binary for ${process.platform} on ${process.arch}`,
    "Install with a C++ compiler and Python, so that npm can build it, or run on Linux x64, macOS arm64 or Windows x64.",
  );
}

/** In bytes: room for some 300,000 settlements. A full disk stops every settle. */
const fewBytes = 2 ** 30;

/** Warns if the disk of an SQLite file is nearly full; undefined otherwise and for Postgres. */
export function checkDiskSpace(
  databaseUrl: string,
  { freeBytes = readFreeBytes }: { freeBytes?: (folder: string) => number | undefined } = {},
): readonly Check[] {
  const file = databaseUrl.startsWith("sqlite:") ? databaseUrl.slice("sqlite:".length) : undefined;
  if (file === undefined || file === ":memory:") return [];
  const folder = dirname(resolve(file));
  const free = freeBytes(folder);
  if (free === undefined || free >= fewBytes) return [];
  return [
    warning(
      "disk",
      `${Math.floor(free / 2 ** 20)} MiB are free in ${folder}; on a full disk no payment can be settled`,
      "Make room, or move the file of DATABASE_URL to a larger disk while serve is stopped.",
    ),
  ];
}

/** Undefined if the folder is missing, which another check reports. */
function readFreeBytes(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

const example = "what `openssl rand -hex 32` prints";

/** Finds keys that must not be used: published test keys, and one key for two purposes. */
export function findRefusedKeys(config: ServeConfig): readonly ConfigurationProblem[] {
  const { operators, recovererKey, sponsorKey, authorizerKeys } = config;
  const recoverer = recovererKey === undefined ? [] : [recovererKey];
  const sponsor = sponsorKey === undefined ? [] : [sponsorKey];
  return [
    ...(operators.kind === "local"
      ? findPublished("OPERATOR_PRIVATE_KEY", "key", operators.privateKeys, isPublishedKey)
      : findPublished("OPERATOR_ADDRESS", "address", operators.addresses, isPublishedAddress)),
    ...findPublished("RECOVERER_PRIVATE_KEY", "key", recoverer, isPublishedKey),
    ...findPublished("SPONSOR_PRIVATE_KEY", "key", sponsor, isPublishedKey),
    ...findPublished(
      "AUTHORIZER_PRIVATE_KEY",
      "key",
      authorizerKeys.map(({ key }) => key),
      isPublishedKey,
    ),
    // It would use the operator's txNonces.
    ...findShared("SPONSOR_PRIVATE_KEY", sponsorKey, operators, "; use one of its own"),
    ...findShared(
      "RECOVERER_PRIVATE_KEY",
      recovererKey,
      operators,
      ": one that leaks could then do both; use another",
    ),
  ];
}

/** Returns true if an account belongs to a published test key. */
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

/** Finds a key that is also a remote operator's. For local operators, the configuration's parser checks this. */
function findShared(
  name: string,
  key: Hex | undefined,
  operators: ServeConfig["operators"],
  what: string,
): readonly ConfigurationProblem[] {
  if (key === undefined || operators.kind === "local") return [];
  const account = privateKeyToAddress(key);
  if (!operators.addresses.some((address) => sameAddress(address, account))) return [];
  return [{ name, problem: `is the key of the operator ${account}${what}`, example }];
}
