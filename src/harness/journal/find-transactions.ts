import { readTransaction } from "../../chain/signing/read-transaction.ts";
import { type Hex, keccak256, readQuantity } from "../../protocol/hex.ts";
import { membersOf } from "../../util/json.ts";
import type { JournalRpcCall, JournalTransaction } from "./payment-journal.ts";

/**
 * The transactions that were broadcast, each once, in the order of their first broadcast.
 *
 * @param broadcasts calls about one payment; only broadcasts are used
 * @param calls all calls, including those that read receipts
 * @param countPayments how many payments a signed transaction has
 */
export function findTransactions(
  broadcasts: readonly JournalRpcCall[],
  calls: readonly JournalRpcCall[],
  countPayments: (raw: string) => number,
): JournalTransaction[] {
  const found = new Map<string, JournalTransaction>();
  for (const { method, params, at } of broadcasts) {
    const [raw] = params;
    if (!method.startsWith("eth_sendRawTransaction") || !isHex(raw)) continue;
    const hash = keccak256(raw);
    if (found.has(hash)) continue;
    const mined = calls.map((call) => readMined(call, hash)).find((receipt) => receipt !== undefined);
    found.set(hash, {
      hash,
      txNonce: readTransaction(raw).txNonce,
      sentAt: at,
      payments: countPayments(raw),
      ...(mined && { mined }),
    });
  }
  return [...found.values()];
}

/** The receipt of a transaction in the answer to a call. */
function readMined(
  { at, tookMs, answer }: JournalRpcCall,
  hash: Hex,
): JournalTransaction["mined"] | undefined {
  const { result } = answer;
  const { transactionHash, blockNumber, status } = membersOf(result);
  if (transactionHash !== hash) return undefined;
  const block = readQuantity(blockNumber);
  return block === undefined
    ? undefined
    : { at: at + tookMs, blockNumber: `${block}`, succeeded: status === "0x1" };
}

function isHex(value: unknown): value is Hex {
  return typeof value === "string" && value.startsWith("0x");
}
