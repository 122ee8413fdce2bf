import { type Hex, isBytes } from "../protocol/hex.ts";
import { isObject } from "../util/json.ts";
import type { RpcError } from "./rpc/rpc.ts";

/** geth, reth, erigon, anvil and newer others: "execution reverted", and nothing else. */
const executionReverted = 3;

/** Codes under which others report reverts, among much else: a revert only together with revert data. */
const ambiguousCodes: ReadonlySet<number | undefined> = new Set([
  -32000, // Nethermind, Besu, Ganache; geth before 1.9.15
  -32015, // OpenEthereum and those after it
  -32603, // Hardhat
]);

/**
 * The revert data in an error to `eth_call`; undefined when it is not certain that the execution reverted, as
 * opposed to a node in trouble. Looks at code and data alone, never at the message.
 */
export function readRevertData({ code, data }: RpcError): Hex | undefined {
  if (code === executionReverted) return findData(data) ?? "0x";
  return ambiguousCodes.has(code) ? findData(data) : undefined;
}

/** Plain, after the word that OpenEthereum puts before it, or inside of objects. */
function findData(data: unknown, depth = 0): Hex | undefined {
  if (typeof data === "string") {
    const bytes = data.startsWith("Reverted ") ? data.slice("Reverted ".length) : data;
    return isBytes(bytes) ? bytes : undefined;
  }
  if (!isObject(data) || depth > 2) return undefined;
  const { data: inner, result, originalError } = data;
  return findData(inner, depth + 1) ?? findData(result, depth + 1) ?? findData(originalError, depth + 1);
}
