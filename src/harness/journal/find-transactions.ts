import { readTransaction } from "../../chain/signing/read-transaction.ts";
import { type Hex, keccak256 } from "../../protocol/hex.ts";
import { readQuantity } from "../../rpc/read-hex.ts";
import { membersOf } from "../../util/json.ts";
import type { JournalRpcCall, JournalTransaction } from "./payment-journal.ts";

/**
 * The transactions among broadcasts, each once, in the order in which they were sent first.
 *
 * @param broadcasts calls about one payment; others than broadcasts are passed over
 * @param calls all calls, among them those that found receipts
 * @param countPayments how many payments the bytes of a transaction carry
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

/** What a call says of a transaction's receipt. */
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
