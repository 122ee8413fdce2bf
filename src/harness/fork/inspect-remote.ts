import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import { type Hex, isBytes, isBytes32, readQuantity } from "../../protocol/hex.ts";
import { builtInNetworks, type Network } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";

type Ask = (method: string, ...params: readonly unknown[]) => Promise<RpcAnswer>;

/**
 * Looks whether an RPC is of a network, has a block, and the state of the network's USDC in it. Gives that block.
 *
 * @param blockNumber the newest by default
 * @throws {KitError} when it does not
 */
export async function inspectRemote(
  network: Network,
  blockNumber: bigint | undefined,
  ask: Ask,
): Promise<{ number: bigint; hash: Hex }> {
  const { name, chainId, usdc } = network;
  const who = `The RPC URL that ${name} is forked from`;
  const expect = async (...call: Parameters<Ask>): Promise<unknown> => {
    const { result, error } = await ask(...call);
    if (error === undefined) return result;
    throw new KitError(`${who} refuses ${call[0]}: ${error.message}`, {
      hints: [`Is its key allowed to use ${name}?`],
    });
  };

  const chain = readQuantity(await expect("eth_chainId"));
  if (chain !== BigInt(chainId)) {
    const other = chain === undefined ? undefined : builtInNetworks.ofChain(Number(chain))?.name;
    const what =
      chain === undefined ? "names no chain id" : `is of chain ${chain}${other ? ` (${other})` : ""}`;
    throw new KitError(`${who} ${what}; ${name} is chain ${chainId}`, {
      hints: [
        other === undefined ? `Take a URL of ${name}.` : `Fork ${other} from it, or take a URL of ${name}.`,
      ],
    });
  }

  const tag = blockNumber === undefined ? "latest" : `0x${blockNumber.toString(16)}`;
  const { number, hash } = membersOf(await expect("eth_getBlockByNumber", tag, false));
  const found = readQuantity(number);
  if (found === undefined || !isBytes32(hash)) {
    throw new KitError(`${who} has no block ${blockNumber ?? "yet"}`, {
      hints: ["Leave the block number out to fork from the newest block."],
    });
  }

  const code = await ask("eth_getCode", usdc.address, `0x${found.toString(16)}`);
  if (code.error !== undefined) {
    throw new KitError(`${who} has no state of block ${found}: ${code.error.message}`, {
      hints: ["Old blocks need an archive node. Leave the block number out to fork from the newest block."],
    });
  }
  if (!isBytes(code.result) || code.result === "0x") {
    throw new KitError(`${who} has no USDC at ${usdc.address} in block ${found}`, {
      hints: [`Is it really a node of ${name}, and the block younger than its USDC?`],
    });
  }
  return { number: found, hash };
}
