import { plural } from "../../chain/deploy/units.ts";
import type { Signer } from "../../chain/signing/signer.ts";
import type { ServeConfig } from "../../config/serve-config.ts";
import type { ConfigurationProblem } from "../../util/errors.ts";
import { type Check, type CheckStatus, ok } from "./check.ts";
import { checkSigner } from "./check-signer.ts";
import { findRefusedKeys } from "./keys.ts";
import { checkSignatureRecovery } from "./signature-recovery.ts";

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
