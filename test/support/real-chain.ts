import { selector } from "../../src/chain/views.ts";
import { mockUsdcDeployedBytecode } from "../../src/contracts/mockUsdc.ts";
import { type LocalNode, startNode } from "../../src/harness/nodes/nodes.ts";
import { planLocalDeployment, resolveFacilitatorContracts } from "../../src/harness/setup/addresses.ts";
import { mockToken } from "../../src/harness/setup/place-contract.ts";
import { mintCall } from "../../src/harness/setup/test-accounts.ts";
import { harnessAccounts, usdcImplementationAddress } from "../../src/payer/accounts.ts";
import { testPayers } from "../../src/payer/test-payers.ts";
import { type Address, addressWord, type Hex } from "../../src/protocol/hex.ts";
import { type BuiltInNetworkName, type Network, networks } from "../../src/protocol/networks.ts";
import { startWatchdog } from "../../src/util/watchdog.ts";
import { placeContracts } from "./place-contracts.ts";

/** A chain that stands in for a real one, with its USDC, and with traces of others at published addresses. */
export type RealChain = {
  node: LocalNode;
  /** An account that is not part of the harness, and its balance. */
  holder: Address;
  held: bigint;
  /** Removes `blacklist(address)` from the token. */
  withoutBlacklist(): Promise<void>;
  stop(): Promise<void>;
};

export async function startRealChain(of: BuiltInNetworkName | Network): Promise<RealChain> {
  const { name, chainId, usdc, tier } = typeof of === "string" ? networks[of] : of;
  const watchdog = startWatchdog();
  const node = await startNode({ name: `real ${name}`, chainId, watchdog });
  const contract = resolveFacilitatorContracts()[tier];
  const slot = (index: number): Hex => `0x${index.toString(16).padStart(64, "0")}`;
  const rubbish: Hex = `0x${"66".repeat(32)}`;
  await placeContracts(node, [
    mockToken(usdc),
    // A contract with the constructor of ours, but with other roles, and broken.
    { name: "a stranger's contract", address: contract, initCode: planLocalDeployment("mainnet").initCode },
  ]);
  // The real USDC has its own code elsewhere.
  const implementation: Address = "0x0000000000000000000000000000000000c0de02";
  await node.batch([
    ["anvil_setCode", usdcImplementationAddress, "0x"],
    ["anvil_setCode", implementation, mockUsdcDeployedBytecode],
    ["anvil_setStorageAt", usdc.address, implementationSlot, `0x${addressWord(implementation)}`],
    ["anvil_setCode", contract, "0x5f5ffd"],
    ...Array.from(
      { length: 12 },
      (_, index) => ["anvil_setStorageAt", contract, slot(index), rubbish] as const,
    ),
    // As on live chains, the published keys have been used, and delegated to code that takes every incoming payment.
    ["anvil_setCode", testPayers.funded.address, `0xef0100${contract.slice(2).toLowerCase()}`],
    ["anvil_setNonce", testPayers.funded.address, "0x7"],
    ["anvil_setBalance", testPayers.funded.address, "0x1"],
    ["anvil_setCode", testPayers.undeployedWallet.address, "0x5f5ffd"],
  ]);
  const { treasury } = harnessAccounts;
  const holder: Address = "0x00000000000000000000000000000000a11ce402";
  const held = 123_456_789n;
  await node.request("anvil_impersonateAccount", treasury.address);
  await node.request("anvil_setBalance", treasury.address, `0x${(10n ** 20n).toString(16)}`);
  // Dust at public addresses, as on live chains.
  const blocks = [
    [mintCall(holder, held)],
    [mintCall(testPayers.empty.address, 5n), mintCall(harnessAccounts.recipient.address, 1n)],
  ];
  for (const calls of blocks) {
    for (const data of calls) {
      await node.request("eth_sendTransaction", { from: treasury.address, to: usdc.address, data });
    }
    await node.request("evm_mine");
  }
  return {
    node,
    holder,
    held,
    async withoutBlacklist() {
      const other = mockUsdcDeployedBytecode.replaceAll(selector("blacklist(address)").slice(2), "00000000");
      await node.request("anvil_setCode", implementation, other);
      await node.request("evm_mine");
    },
    async stop() {
      await node.stop();
      await watchdog.close();
    },
  };
}

/** The slot in which USDC's proxy keeps its implementation: keccak256 of `org.zeppelinos.proxy.implementation`. */
const implementationSlot = "0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3";
