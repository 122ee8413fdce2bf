import { explainFailure } from "../../chain/deploy/explain-failure.ts";
import type { Signer } from "../../chain/signing/signer.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import { type Check, failed, ok } from "./check.ts";

/**
 * Lets a remote signer sign a transaction that can never be mined: its txNonce is out of reach, it offers no fee, and
 * the called contract accepts no coins.
 */
export async function checkSigner(signer: Signer, network: NetworkConfig): Promise<Check> {
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
    return failed("signer", explainFailure(error), {
      account: signer.address,
      advice: "Check OPERATOR_SIGNER_URL, OPERATOR_ADDRESS, and the keys of the remote signer.",
    });
  }
  const ms = Math.round(performance.now() - startedAt);
  return ok("signer", `signs for ${signer.address} in ${ms} ms`);
}
