import type { ChainReader } from "../../../chain/chain-reader.ts";
import type { createLogReader, MinedLog } from "../../../chain/log-reader.ts";
import { readReceiptsAt } from "../../../chain/receipt-reader.ts";
import { headCall, readHead } from "../../../chain/rpc/calls.ts";
import type { Rpc } from "../../../chain/rpc/rpc.ts";
import { addressWord, type Hex, isBytes32, quantity, sameAddress } from "../../../protocol/hex.ts";
import { membersOf } from "../../../util/json.ts";
import type { PaymentUse } from "../../on-chain/settling.ts";
import { authorizationCanceledTopic, authorizationUsedTopic, decodeEvents } from "./events.ts";
import { authorizationStateOf, type KnownPayment } from "./state.ts";

/** What asks the chain. */
type Searched = { rpc: Pick<Rpc, "ask">; reader: ChainReader; readLogs: ReturnType<typeof createLogReader> };

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
  { rpc, reader, readLogs }: Searched,
  { asset, payer, nonce }: KnownPayment,
  { about, blocks }: { about: Hex; blocks: bigint },
): Promise<PaymentUse | undefined> {
  const { target: to, data } = authorizationStateOf(asset, payer, nonce);
  const state = { method: "eth_call", params: [{ to, data }, "latest"], about };
  const [used, newest] = await rpc.ask([state, headCall]);
  const isUsed = reader.expect("authorizationState", used, (result) =>
    isBytes32(result) ? BigInt(result) !== 0n : undefined,
  );
  if (!isUsed) return undefined;
  const { number: head } = reader.expect("the newest block", newest, readHead);

  const filter = {
    ...{ address: asset, about },
    topics: [[authorizationUsedTopic, authorizationCanceledTopic], `0x${addressWord(payer)}` as const, nonce],
  };
  async function find(): Promise<MinedLog | undefined> {
    const oldest = head >= blocks ? head - blocks + 1n : 0n;
    for (let last = head; last >= oldest; last -= blocksAtOnce) {
      const first = last - oldest >= blocksAtOnce ? last - blocksAtOnce + 1n : oldest;
      for await (const [log] of readLogs([filter], first, last)) if (log !== undefined) return log;
    }
    return undefined;
  }
  const log = await find();
  if (log === undefined) return undefined;

  const { transactionHash: transaction, blockNumber, logIndex } = log;
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
  const isUse = events.some((event) => event.logIndex === logIndex && event.name === "AuthorizationUsed");
  const transfer = events.find((event) => event.logIndex === logIndex + 1 && event.name === "Transfer");
  const isOfToken = transfer?.name === "Transfer" && sameAddress(transfer.emitter, asset);
  return {
    kind: isUse ? "used" : "cancelled",
    ...{ transaction, blockNumber, timestamp },
    sender: typeof sender === "string" ? sender : null,
    to: typeof called === "string" ? called : null,
    moved: isUse && isOfToken ? { to: transfer.to, value: transfer.value } : undefined,
  };
}
