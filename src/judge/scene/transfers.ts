import { parseAbiItem } from "viem";
import type { HarnessNetwork } from "../../harness/index.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";

/** A transfer of any token, from the chain's logs. */
export type TokenTransfer = {
  network: NetworkName;
  token: Address;
  to: Address;
  amount: bigint;
  transaction: Hex;
};

const transferEvent = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");

/** Every transfer of any token from an account, on any of the networks, in the order of the chains. */
export async function readTransfers(
  chains: readonly HarnessNetwork[],
  from: Address,
): Promise<readonly TokenTransfer[]> {
  const found = await Promise.all(
    chains.map(async ({ name, client }) => {
      const logs = await client.getLogs({
        event: transferEvent,
        args: { from },
        fromBlock: 0n,
        strict: true,
      });
      return logs.map(({ address: token, args, transactionHash: transaction }) => ({
        network: name,
        token,
        to: args.to,
        amount: args.value,
        transaction,
      }));
    }),
  );
  return found.flat();
}
