import type { Address, Hex } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import type { Signer } from "../signing/signer.ts";
import { type ContractState, type Membership, readContract } from "./contract-state.ts";
import type { Deployment, DeploymentArguments } from "./deployment.ts";
import type { OnChain } from "./on-chain.ts";
import { requireCreate2Deployer } from "./require-network.ts";
import { type PricedTransaction, priceTransaction, sendTransaction } from "./transaction.ts";

/** What a deployment would come to on one chain: nothing, because it is there, or one transaction. */
export type DeploymentPlan =
  | { state: "in place"; contract: ContractState }
  | { state: "missing"; transaction: PricedTransaction };

/**
 * Finds out what there is to do for a deployment.
 *
 * @throws KitError when it cannot be done on this chain
 */
export async function prepareDeployment(
  onChain: OnChain,
  deployment: Deployment,
  sender: Address,
): Promise<DeploymentPlan> {
  const contract = await readContract(onChain.rpc, deployment.address, membershipsOf(deployment.arguments));
  if (contract.code === "ours") return { state: "in place", contract };
  if (contract.code === "other") {
    throw new KitError(`Something else stands at ${deployment.address}`);
  }
  await requireCreate2Deployer(onChain.rpc, onChain.network);
  return { state: "missing", transaction: await priceTransaction(onChain, sender, deployment.call) };
}

/**
 * Deploys the contract, and makes sure that it is there and as it was planned.
 *
 * @throws KitError when it is not
 */
export async function deployContract(
  onChain: OnChain,
  deployment: Deployment,
  transaction: PricedTransaction,
  signer: Signer,
  signal: AbortSignal,
): Promise<{ hash: Hex; blockNumber: bigint; contract: ContractState }> {
  const receipt = await sendTransaction(onChain, signer, transaction, signal);
  const contract = await readContract(onChain.rpc, deployment.address, membershipsOf(deployment.arguments));
  if (contract.code !== "ours" || contract.memberships.some(({ holds }) => holds !== true)) {
    throw new KitError(
      `The transaction ${receipt.hash} was mined, but the contract is not as it was planned`,
      {
        hints: [
          "Look at it in a block explorer before you use it, and run this again: the node may lag behind.",
        ],
      },
    );
  }
  return { hash: receipt.hash, blockNumber: receipt.blockNumber, contract };
}

/** The roles that a deployment hands out. */
function membershipsOf({ operators, recoverer, pauser }: DeploymentArguments): readonly Membership[] {
  return [
    ...operators.map((account) => ({ role: "operator", account }) as const),
    ...(recoverer === undefined ? [] : [{ role: "recoverer", account: recoverer } as const]),
    ...(pauser === undefined ? [] : [{ role: "pauser", account: pauser } as const]),
  ];
}
