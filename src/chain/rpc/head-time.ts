import { readQuantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import type { LocalRpc } from "./local-rpc.ts";

/**
 * The time of a local node's newest block, in unix seconds.
 *
 * @param name what errors call the node: `base`, or its URL
 * @throws {KitError} when the node cannot be asked, or has no block
 */
export async function readHeadTime(node: Pick<LocalRpc, "request">, name: string): Promise<bigint> {
  const block = await node.request("eth_getBlockByNumber", "latest", false);
  const timestamp = readQuantity(membersOf(block).timestamp);
  if (timestamp === undefined) throw new KitError(`The ${name} node has no newest block`);
  return timestamp;
}
