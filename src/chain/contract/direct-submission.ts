import { addressWord, type Hex, sameAddress } from "../../protocol/hex.ts";
import type { Chain, DirectSubmissionQuery } from "../chain.ts";
import type { ChainReader } from "../chain-reader.ts";
import type { LogFilter, LogReader, MinedLog } from "../log-reader.ts";
import { readReceiptsAt } from "../receipt-reader.ts";
import { callViews, readViews } from "../view-calls.ts";
import { authorizationCanceledTopic, authorizationUsedTopic, decodeEvent } from "./events.ts";
import { readReceivedTransfers } from "./received-transfers.ts";
import { authorizationStateOf, viewGas } from "./views.ts";

/** {@link Chain.findDirectSubmission} */
export function createDirectSubmissionFinder(options: {
  reader: ChainReader;
  readLogs: LogReader;
  facilitatorContract: Hex;
}): Chain["findDirectSubmission"] {
  const { reader, readLogs, facilitatorContract } = options;
  const { ask, expect, undetermined } = reader;

  /** Whether the authorization was used or cancelled by a block; undefined when the node does not know that. */
  async function wasUsedBy(
    { asset, payer, authorizationNonce, id: about }: DirectSubmissionQuery,
    block: bigint,
  ): Promise<boolean | undefined> {
    const views = [authorizationStateOf(asset, payer, authorizationNonce)];
    const [state] = await ask([{ ...callViews(views, viewGas, block), about }]);
    // Only archives know old states; the logs are there nevertheless.
    if (state?.error !== undefined) return undefined;
    const { blockNumber, results } = expect("authorizationState", state, (result) => readViews(result, 1));
    const word = results[0]?.word;
    if (blockNumber !== block)
      throw undetermined(`authorizationState: of block ${blockNumber}, not ${block}`);
    if (word === undefined) throw undetermined("authorizationState: no such contract, or no such function");
    return BigInt(word) !== 0n;
  }

  async function findEnd(
    filter: LogFilter,
    fromBlock: bigint,
    toBlock: bigint,
  ): Promise<MinedLog | undefined> {
    for await (const [log] of readLogs([filter], fromBlock, toBlock)) {
      if (log !== undefined) return log;
    }
    return undefined;
  }

  return async (query) => {
    const { asset, payer, authorizationNonce, value, fromBlock, toBlock, id: about } = query;
    const used = await wasUsedBy(query, toBlock);
    if (used === false) return null;

    // The token emits one of the two, once.
    const topics = [
      [authorizationUsedTopic, authorizationCanceledTopic],
      `0x${addressWord(payer)}` as const,
      authorizationNonce,
    ];
    const end = await findEnd({ address: asset, topics, about }, fromBlock, toBlock);
    if (end === undefined) {
      if (used === undefined) return null;
      throw undetermined(
        `an authorization is used by block ${toBlock}, and no log since ${fromBlock} says how`,
      );
    }
    if (decodeEvent(end)?.name === "AuthorizationCanceled") return "cancelled";

    const [receipt] = await readReceiptsAt(reader, [end]);
    if (receipt === undefined) throw undetermined("the receipt of a log is missing");
    const nonce = authorizationNonce.toLowerCase();
    const received = readReceivedTransfers(receipt, asset, facilitatorContract).find(
      (transfer) =>
        sameAddress(transfer.from, payer) &&
        transfer.authorizationNonce === nonce &&
        transfer.value === value,
    );
    if (received === undefined || received.settled) return null;
    const { transactionHash, blockNumber, blockHash } = end;
    return { transactionHash, logIndex: received.logIndex, blockNumber, blockHash };
  };
}
