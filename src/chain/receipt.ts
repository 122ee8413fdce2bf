import { type Hex, isBytes32, readQuantity } from "../protocol/hex.ts";
import { membersOf } from "../util/json.ts";
import type { Receipt } from "./chain.ts";
import { type EventLog, readLog } from "./log.ts";

/** What some nodes give for the hash of a block that is not there yet. */
const noBlockHash = /^0x0{64}$/;

/**
 * Reads the answer to `eth_getTransactionReceipt`: null when there is no receipt (yet), undefined when the answer
 * is not a receipt of the transaction that was asked for.
 */
export function readReceipt(answer: unknown, hash: Hex): Receipt | null | undefined {
  if (answer === null) return null;
  const fields = membersOf(answer);
  const { transactionHash, status, blockHash } = fields;
  if (!isBytes32(transactionHash) || transactionHash.toLowerCase() !== hash.toLowerCase()) return undefined;
  // Some nodes give receipts of transactions that are still pending.
  if (fields.blockNumber === null || blockHash === null) return null;
  const blockNumber = readQuantity(fields.blockNumber);
  const logs = readLogs(fields.logs);
  if (blockNumber === undefined || logs === undefined || !isBytes32(blockHash)) return undefined;
  if (status !== "0x1" && status !== "0x0") return undefined;
  if (noBlockHash.test(blockHash)) return null;
  return { hash, succeeded: status === "0x1", blockNumber, blockHash, logs, gasCost: readGasCost(fields) };
}

/** The gas, plus what base and optimism charge for the data. */
function readGasCost(fields: ReturnType<typeof membersOf>): bigint | undefined {
  const gasUsed = readQuantity(fields.gasUsed);
  const price = readQuantity(fields.effectiveGasPrice);
  if (gasUsed === undefined || price === undefined) return undefined;
  return gasUsed * price + (readQuantity(fields.l1Fee) ?? 0n);
}

function readLogs(logs: unknown): EventLog[] | undefined {
  if (!Array.isArray(logs)) return undefined;
  const read = logs.map(readLog).filter((log) => log !== undefined);
  return read.length === logs.length ? read : undefined;
}
