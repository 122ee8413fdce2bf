import type { ChainQueries } from "../../../chain/chain.ts";
import { type MinedLog, readReceiptsAt } from "../../../chain/logs-and-receipts.ts";
import { sameAddress } from "../../../protocol/hex.ts";
import { decodeEvent } from "../../on-chain/events.ts";
import { readReceivedTransfers } from "../../on-chain/received-transfers.ts";
import type { Search, TransferPlace } from "../../on-chain/settling.ts";
import { wasUsedBy } from "../../on-chain/use-reader.ts";
import { authorizationUse, endsOf } from "./eip3009-state.ts";

/**
 * {@link Recovery.findDirectSubmission}: proven by `AuthorizationUsed` of that very authorization, the `Transfer` of that
 * very value right after it, both of the token, and no `Settled` for it.
 */
export async function findDirectSubmission(
  { reader, readLogs, network: { facilitatorContract } }: ChainQueries,
  { payment, fromBlock, toBlock, id: about }: Search,
): Promise<TransferPlace | "cancelled" | null> {
  const { asset, payer, nonce: authorizationNonce, limit: value } = payment;

  async function findEnd(): Promise<MinedLog | undefined> {
    for await (const [log] of readLogs([{ ...endsOf(payment), about }], fromBlock, toBlock)) {
      if (log !== undefined) return log;
    }
    return undefined;
  }

  const used = await wasUsedBy(reader, authorizationUse, { ...payment, id: about }, toBlock);
  if (used === false) return null;

  const end = await findEnd();
  if (end === undefined) {
    if (used === undefined) return null;
    throw reader.undetermined(
      `an authorization is used by block ${toBlock}, and no log since ${fromBlock} says how`,
    );
  }
  if (decodeEvent(end)?.name === "AuthorizationCanceled") return "cancelled";

  const [receipt] = await readReceiptsAt(reader, [end]);
  if (receipt === undefined) throw reader.undetermined("the receipt of a log is missing");
  const nonce = authorizationNonce.toLowerCase();
  const received = readReceivedTransfers(receipt, asset, facilitatorContract).find(
    (transfer) =>
      sameAddress(transfer.from, payer) && transfer.authorizationNonce === nonce && transfer.value === value,
  );
  if (received === undefined || received.settled) return null;
  const { transactionHash, blockNumber, blockHash } = end;
  return { transactionHash, logIndex: received.logIndex, blockNumber, blockHash };
}
