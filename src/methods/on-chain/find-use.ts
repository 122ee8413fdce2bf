import type { ChainReader } from "../../chain/chain-reader.ts";
import type { createLogReader, MinedLog } from "../../chain/log-reader.ts";
import { readReceiptsAt } from "../../chain/receipt-reader.ts";
import { headCall, readHead } from "../../chain/rpc/calls.ts";
import type { Rpc } from "../../chain/rpc/rpc.ts";
import { type Address, type Hex, isBytes32, quantity } from "../../protocol/hex.ts";
import { membersOf } from "../../util/json.ts";
import { decodeEvents } from "../exact-eip3009/on-chain/events.ts";
import { type KnownPayment, noncesOf } from "./nonces.ts";
import type { PaymentUse } from "./settling.ts";

/** What asks the chain. */
type Searched = {
  rpc: Pick<Rpc, "ask">;
  reader: ChainReader;
  readLogs: ReturnType<typeof createLogReader>;
  facilitatorContract: Address | undefined;
};

/** Blocks per request, newest first: most authorizations were used recently. */
const blocksAtOnce = 2_000n;

/**
 * Searches the newest blocks for the transaction that used or cancelled the authorization of a payment, from any
 * sender. For display only: a reorganization may change the result.
 *
 * @param about the settlement's id, for observers of what is asked about it
 * @returns undefined when the authorization is unused, or was used in older blocks
 * @throws {UndeterminedError} when the chain does not say
 */
export async function findUse(
  { rpc, reader, readLogs, facilitatorContract }: Searched,
  payment: KnownPayment,
  { about, blocks }: { about: Hex; blocks: bigint },
): Promise<PaymentUse | undefined> {
  const nonces = noncesOf(payment, facilitatorContract);
  const { target: to, data } = nonces.view;
  const state = { method: "eth_call", params: [{ to, data }, "latest"], about };
  const [used, newest] = await rpc.ask([state, headCall]);
  const isUsed = reader.expect("whether a nonce is used", used, (result) =>
    isBytes32(result) ? nonces.isUsed(result) : undefined,
  );
  if (!isUsed) return undefined;
  const { number: head } = reader.expect("the newest block", newest, readHead);

  const filters = nonces.ends.map((filter) => ({ ...filter, about }));
  async function find(): Promise<MinedLog | undefined> {
    const oldest = head >= blocks ? head - blocks + 1n : 0n;
    for (let last = head; last >= oldest; last -= blocksAtOnce) {
      const first = last - oldest >= blocksAtOnce ? last - blocksAtOnce + 1n : oldest;
      for await (const logs of readLogs(filters, first, last)) {
        const log = logs.find(nonces.isEnd);
        if (log !== undefined) return log;
      }
    }
    return undefined;
  }
  const log = await find();
  if (log === undefined) return undefined;

  const { transactionHash: transaction, blockNumber } = log;
  const [[receipt], [block, sent]] = await Promise.all([
    readReceiptsAt(reader, [log]),
    rpc.ask([
      { method: "eth_getBlockByNumber", params: [quantity(blockNumber), false] },
      { method: "eth_getTransactionByHash", params: [transaction] },
    ]),
  ]);
  const { timestamp } = reader.expect("a block", block, readHead);
  const { from: sender, to: called } = membersOf(sent?.result);
  const events = receipt === undefined ? [] : decodeEvents(receipt);
  return {
    ...nonces.describe(log, events),
    ...{ transaction, blockNumber, timestamp },
    sender: typeof sender === "string" ? sender : null,
    to: typeof called === "string" ? called : null,
  };
}
