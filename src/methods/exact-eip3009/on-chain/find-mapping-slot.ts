import type { LocalRpc } from "../../../chain/rpc/local-rpc.ts";
import { readQuantity } from "../../../chain/rpc/read-hex.ts";
import type { Address, Hex } from "../../../protocol/hex.ts";
import { membersOf } from "../../../util/json.ts";
import { authorizationSlot } from "./storage-slots.ts";
import { authorizationStateOf } from "./views.ts";

/** Always the same, so that a recording holds what is asked for it. */
const exampleNonce: Hex = `0x${"402".padStart(64, "0")}`;

/** Tokens have a few dozen slots before their mappings, and gaps of 50 for what they inherit from. */
const lastSlot = 1_000n;

/**
 * In which slot a token keeps the states of its authorizations, found by watching which storage a look-up of an account reads.
 * Undefined when it is kept in another way than Solidity's mapping of mappings.
 */
export async function findMappingSlot(
  rpc: LocalRpc,
  token: Address,
  account: Address,
): Promise<bigint | undefined> {
  const { data } = authorizationStateOf(token, account, exampleNonce);
  const read = new Set(readSlots(await rpc.request("eth_createAccessList", { to: token, data }, "latest")));
  for (let slot = 0n; slot <= lastSlot; slot++) {
    if (read.has(authorizationSlot(account, exampleNonce, slot))) return slot;
  }
  return undefined;
}

function readSlots(answer: unknown): readonly bigint[] {
  const { accessList } = membersOf(answer);
  if (!Array.isArray(accessList)) return [];
  return accessList.flatMap((entry: unknown) => {
    const { storageKeys } = membersOf(entry);
    return Array.isArray(storageKeys) ? storageKeys.flatMap((key) => readQuantity(key) ?? []) : [];
  });
}
