import { addressWord, type Hex } from "../../protocol/hex.ts";
import type { Chain, StrandedTransfer } from "../chain.ts";
import type { ChainReader } from "../chain-reader.ts";
import type { LogPlace } from "../log.ts";
import type { LogReader, MinedLog } from "../log-reader.ts";
import { readReceiptsAt } from "../receipt-reader.ts";
import { authorizationKey, decodeEvent, forwardedTopic, settledTopic, transferTopic } from "./events.ts";
import { isTransferTo, readReceivedTransfers } from "./received-transfers.ts";

/** {@link Chain.strandedTransfers} */
export function createStrandedTransfersReader(options: {
  reader: ChainReader;
  readLogs: LogReader;
  facilitatorContract: Hex;
}): Chain["strandedTransfers"] {
  const { reader, readLogs, facilitatorContract } = options;
  const contractTopic: Hex = `0x${addressWord(facilitatorContract)}`;

  return async (asset, fromBlock, toBlock) => {
    const assetTopic: Hex = `0x${addressWord(asset)}`;
    const filters = [
      { address: asset, topics: [transferTopic, null, contractTopic] },
      { address: facilitatorContract, topics: [[settledTopic, forwardedTopic], assetTopic] },
    ];
    const stranded: StrandedTransfer[] = [];
    const forwarded = new Set<string>();

    for await (const logs of readLogs(filters, fromBlock, toBlock)) {
      for (const log of logs) {
        const event = decodeEvent(log);
        if (event?.name === "Forwarded") forwarded.add(authorizationKey(event));
      }
      // Nearly all of what comes in is settled: only of the rest are receipts worth reading.
      const receipts = await readReceiptsAt(reader, findUnsettled(logs, asset, facilitatorContract));
      for (const receipt of receipts) {
        const { hash: transactionHash, blockNumber, blockHash } = receipt;
        for (const { settled, ...transfer } of readReceivedTransfers(receipt, asset, facilitatorContract)) {
          // Transfers of 0 need no allowance: anyone can send them from any account.
          if (settled || transfer.value === 0n) continue;
          stranded.push({ transactionHash, blockNumber, blockHash, ...transfer });
        }
      }
    }
    return stranded
      .filter(
        ({ from: payer, authorizationNonce }) =>
          authorizationNonce === undefined ||
          !forwarded.has(authorizationKey({ token: asset, payer, authorizationNonce })),
      )
      .sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
  };
}

/** The transactions that brought in more than they settled. */
function findUnsettled(logs: readonly MinedLog[], asset: Hex, facilitatorContract: Hex): readonly LogPlace[] {
  const balances = new Map<string, { place: LogPlace; left: number }>();
  const count = (place: LogPlace, payer: Hex, value: bigint, by: 1 | -1) => {
    const key = `${place.transactionHash.toLowerCase()} ${payer} ${value}`;
    balances.set(key, { place, left: (balances.get(key)?.left ?? 0) + by });
  };
  for (const log of logs) {
    const event = decodeEvent(log);
    if (event?.name === "Settled") count(log, event.payer, event.value, -1);
    else if (event && isTransferTo(event, asset, facilitatorContract) && event.value > 0n)
      count(log, event.from, event.value, 1);
  }
  const left = [...balances.values()].filter((balance) => balance.left > 0);
  return [...new Map(left.map(({ place }) => [place.transactionHash, place])).values()];
}
