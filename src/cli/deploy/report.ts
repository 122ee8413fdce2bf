import type { ContractState, OperatorPlan } from "../../chain/deploy/contract-state.ts";
import { type Deployment, type DeploymentArguments, siblingsOf } from "../../chain/deploy/deployment.ts";
import type { PricedTransaction } from "../../chain/deploy/priced-transaction.ts";
import { contractVariables } from "../../config/variables.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import { formatCoins, formatCount, formatGwei, formatSeconds } from "../../protocol/token-units.ts";
import { self } from "../../util/self-command.ts";

/** The transaction to send, its sender, and whether the sender can afford it. */
export type Sending = {
  transaction: PricedTransaction;
  sender: Address;
  balance: bigint;
  /** The deployment's accounts whose keys are published. */
  published: readonly Address[];
};

export function renderPlan(network: Network, deployment: Deployment, sending: Sending): string {
  const { admin, operators } = deployment.arguments;
  const adminSettles = operators.some((operator) => sameAddress(operator, admin));
  return [
    `The facilitator contract on ${network.name} (chain ${network.chainId})`,
    "",
    ...rows([
      ["contract", deployment.address],
      ...argumentRows(deployment),
      ["sent by", `${sending.sender}, which has ${formatCoins(sending.balance, network)}`],
      ...costRows(network, sending.transaction),
    ]),
    "",
    ...explainAddress(network, deployment),
    ...(adminSettles
      ? [
          "",
          `warning: ${admin} is admin and operator: a thief of the server's key would control the contract.`,
        ]
      : []),
    ...(sending.published.length > 0
      ? [
          "",
          `Published test keys are accepted because the RPC is on this machine: ${sending.published.join(", ")}`,
        ]
      : []),
    "",
  ].join("\n");
}

export function renderDeployed(
  network: Network,
  deployment: Deployment,
  { hash, blockNumber }: { hash: Hex; blockNumber: bigint },
): string {
  return [
    `Deployed in block ${formatCount(blockNumber)} by ${hash}. Its code and its roles are as planned.`,
    `Set this, and see with ${self} doctor whether everything else is there:`,
    "",
    variableLine(network, deployment),
  ].join("\n");
}

export function renderInPlace(network: Network, deployment: Deployment, contract: ContractState): string {
  const { admin, adminDelay } = deployment.arguments;
  const isAdmin = contract.admin !== undefined && sameAddress(contract.admin, admin);
  const delay = contract.adminDelay ?? adminDelay;
  return [
    `The facilitator contract is in place on ${network.name}, with every function of this version.`,
    "",
    ...rows([
      ["contract", deployment.address],
      ["admin", isAdmin ? admin : `${contract.admin}; no longer ${admin}`],
      ["admin delay", formatSeconds(delay)],
      ...contract.memberships.map(({ role, account, holds }): [string, string] => [
        role,
        holds === true ? account : `${account} does not hold the role any more`,
      ]),
    ]),
    "",
    "Nothing was to be done.",
    "",
    variableLine(network, deployment),
  ].join("\n");
}

export function costRows(network: Network, transaction: PricedTransaction): [string, string][] {
  const { gas, gasLimit, price, expectedCost, highestCost } = transaction;
  return [
    [
      "gas",
      `${formatCount(gas)} at ${formatGwei(price.perGas)}; at most ${formatCount(gasLimit)} at ${formatGwei(price.fees.maxFeePerGas)}`,
    ],
    ["cost", `about ${formatCoins(expectedCost, network)}, at most ${formatCoins(highestCost, network)}`],
  ];
}

/** Renders names and values in two columns. */
export function rows(pairs: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
}

function argumentRows({ salt, arguments: given }: Deployment): [string, string][] {
  const { admin, adminDelay, operators, recoverer, pauser } = given;
  return [
    ["admin", admin],
    ["admin delay", formatSeconds(adminDelay)],
    ...operators.map((operator, index): [string, string] => [index === 0 ? "operators" : "", operator]),
    ["recoverer", recoverer ?? "none"],
    ["pauser", pauser ?? "none"],
    ["salt", salt],
  ];
}

function explainAddress(network: Network, deployment: Deployment): string[] {
  const siblings = siblingsOf(network);
  const options = formatArguments(deployment.arguments);
  return [
    "The address follows from the admin, its delay, the operators, the recoverer and the pauser, as they are here.",
    `The same ones give the same address on ${siblings.join(" and ")}; change operators after deploying, not here:`,
    ...siblings.map((sibling) => `  ${self} deploy --network ${sibling} ${options}`),
  ];
}

function variableLine(network: Network, { address }: Deployment): string {
  return `${contractVariables[network.tier]}=${address}`;
}

/** The options that reproduce the same constructor arguments, and thus the same address. */
export function formatArguments({
  admin,
  adminDelay,
  operators,
  recoverer,
  pauser,
}: DeploymentArguments): string {
  return [
    `--admin ${admin}`,
    `--admin-delay ${adminDelay}`,
    `--operators ${operators.join(",")}`,
    `--recoverer ${recoverer ?? "none"}`,
    `--pauser ${pauser ?? "none"}`,
  ].join(" ");
}

/** The outcome of a deployment, planned or done. */
export type DeploymentOutcome = {
  state: "planned" | "deployed" | "in place";
  /** The transaction to send, or the one that was sent. */
  transaction?: PricedTransaction;
  hash?: Hex;
  blockNumber?: bigint;
  /** The state of the deployed contract. */
  contract?: ContractState;
};

export function deploymentAsJson(
  network: Network,
  deployment: Deployment,
  { state, transaction, hash, blockNumber, contract }: DeploymentOutcome,
) {
  const { address, salt, arguments: given } = deployment;
  return {
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
  };
}

/** The JSON of operator changes; `call` is what the admin must send. */
export function operatorsAsJson(
  network: Network,
  { contract, admin, changes }: OperatorPlan,
  state: "planned" | "changed" | "in place",
  hashes: readonly Hex[] = [],
) {
  return {
    network: network.name,
    chainId: network.chainId,
    state,
    contract,
    admin,
    changes: changes.map(({ change, account, call }) => ({ change, account, call: call ?? null })),
    ...(hashes.length > 0 && { transactions: hashes }),
  };
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
