import { contractVariables } from "../../config/variables.ts";
import type { OperatorPlan } from "../../deploy/change-operators.ts";
import type { ContractState } from "../../deploy/contract-state.ts";
import type { Deployment } from "../../deploy/deployment.ts";
import type { PricedTransaction } from "../../deploy/transaction.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { DeploySession } from "./session.ts";

/** What there was to do for a deployment, or has been done. */
export type DeploymentOutcome = {
  state: "planned" | "deployed" | "in place";
  /** What is or was sent. */
  transaction?: PricedTransaction;
  hash?: Hex;
  blockNumber?: bigint;
  /** The contract as it stands. */
  contract?: ContractState;
};

/** A deployment as one line for scripts. */
export function deploymentAsJson(
  { network }: DeploySession,
  deployment: Deployment,
  { state, transaction, hash, blockNumber, contract }: DeploymentOutcome,
): string {
  const { address, salt, arguments: given } = deployment;
  return toJson({
    network: network.name,
    chainId: network.chainId,
    state,
    contract: address,
    variable: contractVariables[network.tier],
    salt,
    arguments: { ...given, recoverer: given.recoverer ?? null, pauser: given.pauser ?? null },
    ...(contract && { admin: contract.admin, roles: contract.memberships }),
    ...(transaction && { cost: costOf(transaction) }),
    ...(hash && { transaction: { hash, blockNumber } }),
  });
}

/** Changes of operators as one line for scripts; `calls` are what the admin would send. */
export function operatorsAsJson(
  { network }: DeploySession,
  { contract, admin, changes }: OperatorPlan,
  state: "planned" | "changed" | "in place",
  hashes: readonly Hex[] = [],
): string {
  return toJson({
    network: network.name,
    chainId: network.chainId,
    state,
    contract,
    admin,
    changes: changes.map(({ change, account, call }) => ({ change, account, call: call ?? null })),
    ...(hashes.length > 0 && { transactions: hashes }),
  });
}

function costOf({ gas, gasLimit, price, expectedCost, highestCost }: PricedTransaction) {
  const { maxFeePerGas } = price.fees;
  return {
    gas,
    gasLimit,
    gasPrice: price.perGas,
    maxFeePerGas,
    expected: expectedCost,
    highest: highestCost,
  };
}

/** Integers of any size as decimal strings. */
function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => (typeof part === "bigint" ? part.toString() : part));
}
