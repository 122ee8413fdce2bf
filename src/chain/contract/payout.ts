import { type Address, addressWord } from "../../protocol/hex.ts";
import type { Chain } from "../chain.ts";
import type { ChainReader } from "../chain-reader.ts";
import type { LogReader } from "../log-reader.ts";
import { readReceiptsAt } from "../receipt-reader.ts";
import { forwardedTopic, settledTopic } from "./events.ts";
import { provesForwarding, readSettlements } from "./receipt-proof.ts";

/** {@link Chain.findPayout} */
export function createPayoutFinder(options: {
  reader: ChainReader;
  readLogs: LogReader;
  facilitatorContract: Address;
}): Chain["findPayout"] {
  const { reader, readLogs, facilitatorContract } = options;
  return async ({ fromBlock, toBlock, id: about, ...payment }) => {
    const { asset, payer, authorizationNonce } = payment;
    const topics = [
      [settledTopic, forwardedTopic],
      `0x${addressWord(asset)}` as const,
      `0x${addressWord(payer)}` as const,
      authorizationNonce,
    ];
    const filter = { address: facilitatorContract, topics, about };
    for await (const logs of readLogs([filter], fromBlock, toBlock)) {
      for (const receipt of await readReceiptsAt(reader, logs)) {
        const { hash, blockNumber, blockHash } = receipt;
        const place = { hash, blockNumber, blockHash };
        if (readSettlements(receipt, facilitatorContract).find(payment)?.settled === true) {
          return { kind: "settled", ...place };
        }
        if (provesForwarding(receipt, facilitatorContract, payment)) return { kind: "forwarded", ...place };
      }
    }
    return null;
  };
}
