import type { Signer } from "../chain/signing/signer.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import type { ServeConfig } from "../config/serve-config.ts";
import { explainFailure } from "../deploy/explain-failure.ts";
import { plural } from "../deploy/units.ts";
import type { ConfigurationProblem } from "../errors.ts";
import type { Check, CheckStatus } from "./check.ts";
import { findRefusedKeys } from "./keys.ts";
import { checkSignatureRecovery } from "./signature-recovery.ts";

/** Looks at a configuration by itself, and has remote signers sign. */
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
    { name: "variables", status: "ok", detail },
    ...findRefusedKeys(config).map((problem) => problemAsCheck(problem, "failed")),
    ...warnings.map((problem) => problemAsCheck(problem, "warning")),
    ...(slowRecovery === undefined ? [] : [slowRecovery]),
    ...(isRemote ? await Promise.all(signers.map((signer) => checkSigner(signer, network))) : []),
  ];
}

export function problemAsCheck({ name, problem, example }: ConfigurationProblem, status: CheckStatus): Check {
  return { name, status, detail: problem, ...(example && { advice: `For example ${example}` }) };
}

/**
 * Has a remote signer sign something that cannot do anything: a txNonce that no account ever reaches, no fee, and a
 * contract that takes no money.
 */
async function checkSigner(signer: Signer, network: NetworkConfig): Promise<Check> {
  const startedAt = performance.now();
  try {
    await signer.signTransaction({
      chainId: network.chainId,
      nonce: Number.MAX_SAFE_INTEGER,
      to: network.facilitatorContract,
      data: "0x",
      gas: 21_000n,
      maxFeePerGas: 0n,
      maxPriorityFeePerGas: 0n,
    });
  } catch (error) {
    return {
      name: "signer",
      status: "failed",
      detail: explainFailure(error),
      advice: "Check OPERATOR_SIGNER_URL, OPERATOR_ADDRESS, and the keys of the remote signer.",
    };
  }
  const ms = Math.round(performance.now() - startedAt);
  return { name: "signer", status: "ok", detail: `signs for ${signer.address} in ${ms} ms` };
}
