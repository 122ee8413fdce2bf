import { type Address, type Hex, isAddress, isBytes, isBytes32, readQuantity } from "../protocol/hex.ts";
import { membersOf } from "../util/json.ts";

/** An event as a contract emitted it. `logIndex` counts all logs of the block. */
export type EventLog = { address: Address; topics: readonly Hex[]; data: Hex; logIndex: number };

/** Where a log stands on the chain. */
export type LogPlace = { transactionHash: Hex; blockNumber: bigint; blockHash: Hex };

/** Reads a log; undefined when it is none. */
export function readLog(log: unknown): EventLog | undefined {
  const { address, topics, data, ...rest } = membersOf(log);
  const logIndex = Number(readQuantity(rest.logIndex) ?? Number.NaN);
  if (!isAddress(address) || !isBytes(data) || !Number.isSafeInteger(logIndex)) return undefined;
  if (!Array.isArray(topics) || !topics.every(isBytes32)) return undefined;
  return { address, topics, data, logIndex };
}

/** Reads where a log stands; undefined when it does not say, or that it stands nowhere any more. */
export function readLogPlace(log: unknown): LogPlace | undefined {
  const { transactionHash, blockHash, removed, ...rest } = membersOf(log);
  if (removed === true) return undefined;
  const blockNumber = readQuantity(rest.blockNumber);
  if (!isBytes32(transactionHash) || !isBytes32(blockHash) || blockNumber === undefined) return undefined;
  return { transactionHash, blockNumber, blockHash };
}
