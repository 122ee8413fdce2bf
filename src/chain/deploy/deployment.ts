import { x402FacilitatorBytecode } from "../../contracts/x402Facilitator.ts";
import { create2Address, create2Deployer } from "../../protocol/create2.ts";
import { type Address, addressWord, type Hex, keccak256Text, uintWord } from "../../protocol/hex.ts";
import {
  builtInNetworks,
  type Network,
  type NetworkName,
  type NetworkRegistry,
  type NetworkTier,
} from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { Signer } from "../signing/local-signer.ts";
import { type ContractState, membershipsOf, readContract } from "./contract-state.ts";
import { type OnChain, requireCreate2Deployer } from "./endpoints.ts";
import { type PricedTransaction, priceTransaction, sendTransaction } from "./priced-transaction.ts";

/** The constructor's arguments, which determine the contract's address. */
export type DeploymentArguments = {
  /** Grants and revokes roles, and announces rescues. */
  admin: Address;
  /** The delay before a transfer of the admin role can be accepted, in seconds. */
  adminDelay: number;
  /** Accounts that may settle, in any order. */
  operators: readonly Address[];
  /** May forward authorizations that others submitted; undefined for none. */
  recoverer: Address | undefined;
  /** May pause; undefined for none. */
  pauser: Address | undefined;
};

/** A planned deployment, which is the same on every network of a tier. */
export type Deployment = {
  tier: NetworkTier;
  arguments: DeploymentArguments;
  address: Address;
  salt: Hex;
  /** The contract's creation code with its constructor arguments. */
  initCode: Hex;
  /** The call that deploys it, from any account. */
  call: { to: Address; data: Hex };
};

/** One per tier, so that the same arguments give different addresses on each. */
const salts: Readonly<Record<NetworkTier, Hex>> = {
  mainnet: keccak256Text("x402-facilitator-kit facilitator: mainnet"),
  testnet: keccak256Text("x402-facilitator-kit facilitator: testnet"),
};

/** Plans a deployment. The same arguments give the same address on every network of a tier. */
export function planDeployment(tier: NetworkTier, given: DeploymentArguments): Deployment {
  const operators = [...given.operators].sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  const sorted = { ...given, operators };
  const initCode = encodeInitCode(sorted);
  const salt = salts[tier];
  return {
    tier,
    arguments: sorted,
    // Lazy, because hashing the code takes 10 ms in a process that has just started.
    get address() {
      return create2Address(salt, initCode);
    },
    salt,
    initCode,
    call: { to: create2Deployer, data: `${salt}${initCode.slice(2)}` },
  };
}

const noAccount: Address = `0x${"0".repeat(40)}`;

/**
 * `X402Facilitator(adminDelay, admin, operators, recoverer, pauser)`. Encoded by hand, and compared with viem in a
 * test: viem's encoder takes 100 ms to import, a tenth of the start of the local chains.
 */
function encodeInitCode(given: DeploymentArguments): Hex {
  const { admin, adminDelay, operators, recoverer = noAccount, pauser = noAccount } = given;
  const words = [
    uintWord(BigInt(adminDelay)),
    addressWord(admin),
    uintWord(5n * 32n),
    addressWord(recoverer),
    addressWord(pauser),
    uintWord(BigInt(operators.length)),
    ...operators.map(addressWord),
  ];
  return `${x402FacilitatorBytecode}${words.join("")}`;
}

/** Returns the other known networks that share an address with the given one. */
export function siblingsOf(
  { name, tier }: Pick<Network, "name" | "tier">,
  known: NetworkRegistry = builtInNetworks,
): readonly NetworkName[] {
  return known.all.filter((other) => other.name !== name && other.tier === tier).map((other) => other.name);
}

/** The plan of a deployment on one chain: nothing if it exists, otherwise one transaction. */
export type DeploymentPlan =
  | { state: "in place"; contract: ContractState }
  | { state: "missing"; transaction: PricedTransaction };

/**
 * Plans what is left to do for a deployment.
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
 * Deploys the contract, and requires that it is there as planned.
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
