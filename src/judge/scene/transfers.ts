import { readLog, readLogPlace } from "../../chain/logs-and-receipts.ts";
import type { AskNode } from "../../chain/rpc/calls.ts";
import { decodeEvent, transferTopic } from "../../methods/on-chain/events.ts";
import { type Address, addressWord, checksumAddress, type Hex, quantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";

/** A transfer of a token, from the chain's logs. */
export type Transfer = { token: Address; from: Address; to: Address; amount: bigint; transaction: Hex };

/** Selects transfers of any token, unless one is named. */
export type TransferFilter = { from: Address; since: bigint; token?: Address };

/**
 * Calls a node's method and returns its result.
 *
 * @throws {KitError} if the node answers with an error
 */
export async function expectResult(
  ask: AskNode,
  method: string,
  ...params: readonly unknown[]
): Promise<unknown> {
  const { result, error } = await ask(method, ...params);
  if (error !== undefined) throw new KitError(`The RPC endpoint refused ${method}: ${error.message}`);
  return result;
}

/** Reads every transfer from an account since a block, in chain order. */
export async function readTransfers(
  ask: AskNode,
  { from, since, token }: TransferFilter,
): Promise<Transfer[]> {
  const logs = await expectResult(ask, "eth_getLogs", {
    ...(token !== undefined && { address: token }),
    topics: [transferTopic, `0x${addressWord(from)}`],
    fromBlock: quantity(since),
    toBlock: "latest",
  });
  return [logs].flat().flatMap((json: unknown): Transfer[] => {
    const log = readLog(json);
    const event = log && decodeEvent(log);
    const place = readLogPlace(json);
    if (event?.name !== "Transfer" || place === undefined) return [];
    return [
      {
        token: checksumAddress(event.emitter),
        from: event.from,
        to: checksumAddress(event.to),
        amount: event.value,
        transaction: place.transactionHash,
      },
    ];
  });
}
