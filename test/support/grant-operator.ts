import { encodeFunctionData } from "viem";
import { x402FacilitatorAbi } from "../../src/contracts/x402Facilitator.ts";
import type { HarnessChain } from "../../src/harness/setup/prepare-chain.ts";
import { harnessAccounts } from "../../src/payer/accounts.ts";
import { type Address, keccak256Text } from "../../src/protocol/hex.ts";

/** Lets another account settle on a chain. */
export function grantOperator(chain: HarnessChain, account: Address): Promise<void> {
  return changeRole(chain, "grantRole", account);
}

/** Stops an account from settling on a chain. */
export function revokeOperator(chain: HarnessChain, account: Address): Promise<void> {
  return changeRole(chain, "revokeRole", account);
}

async function changeRole(
  { node, facilitatorContract }: HarnessChain,
  functionName: "grantRole" | "revokeRole",
  account: Address,
): Promise<void> {
  const from = harnessAccounts.admin.address;
  const data = encodeFunctionData({
    abi: x402FacilitatorAbi,
    functionName,
    args: [keccak256Text("OPERATOR_ROLE"), account],
  });
  await node.request("anvil_impersonateAccount", from);
  await node.request("eth_sendTransaction", { from, to: facilitatorContract, data, gas: "0x30d40" });
  await node.request("evm_mine");
}
