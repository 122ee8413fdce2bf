import type { ChainQueries } from "../../../chain/chain.ts";
import { readReceiptsAt } from "../../../chain/receipt-reader.ts";
import { addressWord } from "../../../protocol/hex.ts";
import type { Payout, Search } from "../../on-chain/settling.ts";
import { forwardedTopic, settledTopic } from "./events.ts";
import { provesForwarding, readSettlements } from "./receipt-proof.ts";
import { receivedOf } from "./received-payment.ts";

/** {@link Settling.findPayout} */
export async function findPayout(
  { reader, readLogs, network: { facilitatorContract } }: ChainQueries,
  { fromBlock, toBlock, ...call }: Search,
): Promise<Payout | null> {
  const received = receivedOf(call);
  const topics = [
    [settledTopic, forwardedTopic],
    `0x${addressWord(received.asset)}` as const,
    `0x${addressWord(received.payer)}` as const,
    received.authorizationNonce,
  ];
  const filter = { address: facilitatorContract, topics, about: call.id };
  for await (const logs of readLogs([filter], fromBlock, toBlock)) {
    for (const receipt of await readReceiptsAt(reader, logs)) {
      const { hash, blockNumber, blockHash } = receipt;
      const place = { hash, blockNumber, blockHash };
      if (readSettlements(receipt, facilitatorContract).find(received)?.settled === true) {
        return { kind: "settled", ...place };
      }
      if (provesForwarding(receipt, facilitatorContract, received)) return { kind: "forwarded", ...place };
    }
  }
  return null;
}
