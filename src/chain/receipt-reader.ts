import { type Hex, isBytes32, readQuantity } from "../protocol/hex.ts";
import { membersOf } from "../util/json.ts";
import type { Chain, EndpointReceipt, Receipt } from "./chain.ts";
import type { ChainReader } from "./chain-reader.ts";
import { type EventLog, type LogPlace, readLog } from "./log-reader.ts";
import type { RpcCall } from "./rpc/rpc.ts";

/** How many endpoints are asked for a receipt that is of no use. */
const turns = 3;

/**
 * Reads receipts, from other endpoints where one gives what cannot be read, or what is not true.
 *
 * A receipt of success proves itself by its logs. One of a reverted transaction
 * has none: it is believed when the transaction itself is in the block that the receipt names. Nodes and
 * caches that mix receipts up are rare; a payment that is called failed, and is made all the same, is lost.
 */
export function createReceiptReader({ ask }: Pick<ChainReader, "ask">): Chain["receipts"] {
  async function findReverted(reverted: readonly Receipt[], attempt: number): Promise<ReadonlySet<Hex>> {
    if (reverted.length === 0) return new Set();
    const calls = reverted.map(({ hash }) => transactionCall(hash));
    const answers = await ask(calls, { attempt });
    const found = reverted.filter((receipt, index) => isWhereSaid(answers[index]?.result, receipt));
    return new Set(found.map(({ hash }) => hash));
  }

  return async (hashes, { attempt: before = 0 } = {}) => {
    const receipts = new Map<Hex, EndpointReceipt | null>();
    let left = hashes;
    for (let turn = 0; left.length > 0 && turn < turns; turn++) {
      const attempt = before + turn;
      const calls = left.map(receiptCall);
      const answers = await ask(calls, { attempt });
      const read = left.map((hash, index) => {
        const { result, endpoint = "" } = answers[index] ?? {};
        const receipt = readReceipt(result, hash);
        return receipt && { ...receipt, endpoint };
      });
      const reverted = await findReverted(
        read.flatMap((receipt) => (receipt == null || receipt.succeeded ? [] : receipt)),
        attempt,
      );
      for (const [index, hash] of left.entries()) {
        const receipt = read[index];
        if (receipt === null || receipt?.succeeded === true || reverted.has(hash)) {
          receipts.set(hash, receipt ?? null);
        }
      }
      left = left.filter((hash) => !receipts.has(hash));
    }
    // A receipt that no endpoint gives in a useful form is not known yet; the others are all the same.
    return hashes.map((hash) => receipts.get(hash) ?? null);
  };
}

/** Whether a node has the transaction of a receipt in the block of the receipt. */
function isWhereSaid(transaction: unknown, { hash, blockHash, blockNumber }: Receipt): boolean {
  const said = membersOf(transaction);
  const same = (one: unknown, other: Hex) =>
    typeof one === "string" && one.toLowerCase() === other.toLowerCase();
  return (
    same(said.hash, hash) && same(said.blockHash, blockHash) && readQuantity(said.blockNumber) === blockNumber
  );
}

/**
 * Reads the receipts of transactions that a log was found in.
 *
 * @throws UndeterminedError where there is none, or one of another block than the log's
 */
export async function readReceiptsAt(
  reader: ChainReader,
  places: readonly LogPlace[],
): Promise<readonly Receipt[]> {
  if (places.length === 0) return [];
  const answers = await reader.ask(places.map(({ transactionHash }) => receiptCall(transactionHash)));
  return places.map(({ transactionHash, blockHash }, index) => {
    const receipt = reader.expect(
      "the receipt of a log",
      answers[index],
      (result) => readReceipt(result, transactionHash) ?? undefined,
    );
    if (receipt.blockHash.toLowerCase() !== blockHash.toLowerCase()) {
      throw reader.undetermined("a log and its receipt are of different blocks");
    }
    return receipt;
  });
}

function receiptCall(hash: Hex): RpcCall {
  return { method: "eth_getTransactionReceipt", params: [hash], about: hash };
}

/** Asks for a transaction, mined or not. */
export function transactionCall(hash: Hex): RpcCall {
  return { method: "eth_getTransactionByHash", params: [hash], about: hash };
}

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
  const logs = readLogs(fields.logs, hash);
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

/**
 * Undefined as well where a log names another transaction: its logs would prove the payments of another attempt of the same txNonce,
 * and this one would be named as the one that paid.
 */
function readLogs(logs: unknown, hash: Hex): EventLog[] | undefined {
  if (!Array.isArray(logs)) return undefined;
  const read = logs.map((log) => {
    const { transactionHash = hash } = membersOf(log);
    return String(transactionHash).toLowerCase() === hash.toLowerCase() ? readLog(log) : undefined;
  });
  const known = read.filter((log) => log !== undefined);
  return known.length === logs.length ? known : undefined;
}
