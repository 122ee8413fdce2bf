import { addressWord, type Hex } from "../../protocol/hex.ts";
import { wordAt } from "../../rpc/read-hex.ts";
import type { Chain, Receipt, StrandedTransfer } from "../chain.ts";
import type { ChainReader } from "../chain-reader.ts";
import type { LogPlace } from "../log.ts";
import type { LogReader, MinedLog } from "../log-reader.ts";
import { readReceipt } from "../receipt.ts";
import { forwardedTopic, settledTopic, transferTopic } from "./events.ts";
import { readReceivedTransfers, readTransfer } from "./received-transfers.ts";

/** {@link Chain.strandedTransfers} */
export function createStrandedTransfersReader(options: {
  reader: ChainReader;
  readLogs: LogReader;
  facilitatorContract: Hex;
}): Chain["strandedTransfers"] {
  const { reader, readLogs, facilitatorContract } = options;
  const contractTopic: Hex = `0x${addressWord(facilitatorContract)}`;

  async function readReceipts(places: readonly LogPlace[]): Promise<readonly Receipt[]> {
    if (places.length === 0) return [];
    const answers = await reader.ask(
      places.map(({ transactionHash }) => ({
        method: "eth_getTransactionReceipt",
        params: [transactionHash],
      })),
    );
    return places.map(({ transactionHash, blockHash }, index) => {
      const receipt = reader.expect(
        "the receipt of a transfer",
        answers[index],
        (result) => readReceipt(result, transactionHash) ?? undefined,
      );
      if (receipt.blockHash.toLowerCase() !== blockHash.toLowerCase()) {
        throw reader.undetermined("a transfer and its receipt are of different blocks");
      }
      return receipt;
    });
  }

  return async (asset, fromBlock, toBlock) => {
    const assetTopic: Hex = `0x${addressWord(asset)}`;
    const filters = [
      { address: asset, topics: [transferTopic, null, contractTopic] },
      { address: facilitatorContract, topics: [[settledTopic, forwardedTopic], assetTopic] },
    ];
    const stranded: StrandedTransfer[] = [];
    const forwarded = new Set<string>();

    for await (const logs of readLogs(filters, fromBlock, toBlock)) {
      for (const { topics } of logs) {
        if (topics[0]?.toLowerCase() === forwardedTopic) forwarded.add(keyOf(topics[2], topics[3]));
      }
      // Nearly all of what comes in is settled: only of the rest are receipts worth reading.
      const receipts = await readReceipts(unsettled(logs, asset, facilitatorContract));
      for (const receipt of receipts) {
        const { hash: transactionHash, blockNumber, blockHash } = receipt;
        for (const transfer of readReceivedTransfers(receipt, asset, facilitatorContract)) {
          const { settled, logIndex, from, value, authorizationNonce } = transfer;
          // Anybody can move nothing from anybody to anybody.
          if (settled || value === 0n) continue;
          stranded.push({
            transactionHash,
            logIndex,
            blockNumber,
            blockHash,
            from,
            value,
            authorizationNonce,
          });
        }
      }
    }
    return stranded
      .filter(({ from, authorizationNonce }) => !forwarded.has(keyOf(from, authorizationNonce)))
      .sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
  };
}

/** The transactions that brought in more than they settled. */
function unsettled(logs: readonly MinedLog[], asset: Hex, facilitatorContract: Hex): readonly LogPlace[] {
  const balances = new Map<string, { place: LogPlace; left: number }>();
  const count = (log: MinedLog, payer: string | undefined, value: string | undefined, by: 1 | -1) => {
    const key = [log.transactionHash, payer?.slice(-40), value].join().toLowerCase();
    balances.set(key, { place: log, left: (balances.get(key)?.left ?? 0) + by });
  };
  for (const log of logs) {
    const { topics, data } = log;
    if (topics[0]?.toLowerCase() === settledTopic) count(log, topics[2], wordAt(data, 1), -1);
    const transfer = readTransfer(log, asset, facilitatorContract);
    if (transfer !== undefined && transfer.value > 0n) count(log, transfer.from, wordAt(data, 0), 1);
  }
  const left = [...balances.values()].filter((balance) => balance.left > 0);
  return [...new Map(left.map(({ place }) => [place.transactionHash, place])).values()];
}

function keyOf(payer: string | undefined, authorizationNonce: string | undefined): string {
  return `${payer?.slice(-40)} ${authorizationNonce}`.toLowerCase();
}
