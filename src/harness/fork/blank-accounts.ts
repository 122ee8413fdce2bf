import type { RpcAnswer, RpcCall } from "../../chain/rpc/rpc.ts";
import type { Address } from "../../protocol/hex.ts";

/**
 * Where Prague keeps the hashes of earlier blocks (EIP-2935). Every block writes another slot of it: a fork would ask
 * for one with each block, and anvil 1.7 ends when there is no answer.
 */
const blockHashStore: Address = "0x0000f90827f1c53a10cb7a02335b175320002935";

/**
 * Answers what a fork asks about accounts that the harness puts in place itself, as if they had never been used. So
 * what stands at those addresses on the real chain, such as the code that published keys are delegated to, is not on
 * the fork: no code, no storage, no txNonce, no balance.
 *
 * @returns undefined for a call about anything else
 */
export function createBlankAccounts(addresses: readonly Address[]): (call: RpcCall) => RpcAnswer | undefined {
  const blank = new Set(addresses.map((address) => address.toLowerCase()));
  return ({ method, params: [subject] }) => {
    if (typeof subject !== "string") return undefined;
    const address = subject.toLowerCase();
    if (method === "eth_getStorageAt" && (address === blockHashStore || blank.has(address))) {
      return { result: `0x${"0".repeat(64)}` };
    }
    if (!blank.has(address)) return undefined;
    switch (method) {
      case "eth_getCode":
        return { result: "0x" };
      case "eth_getBalance":
      case "eth_getTransactionCount":
        return { result: "0x0" };
      default:
        return undefined;
    }
  };
}
