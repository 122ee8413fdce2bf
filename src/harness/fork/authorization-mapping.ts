import type { LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { readQuantity } from "../../chain/rpc/read-hex.ts";
import { selector } from "../../chain/views.ts";
import { type Address, addressWord, type Hex } from "../../protocol/hex.ts";
import { testPayers } from "../../published/test-payers.ts";
import { membersOf } from "../../util/json.ts";
import { authorizationSlot } from "./authorization-slots.ts";

const authorizationStateSelector = selector("authorizationState(address,bytes32)");

/** Always the same, so that a recording holds what is asked for it. */
const exampleNonce: Hex = `0x${"402".padStart(64, "0")}`;

/** Tokens have a few dozen slots before their mappings, and gaps of 50 for what they inherit from. */
const lastSlot = 1_000n;

/**
 * In which slot a token keeps the states of its authorizations, found by watching which storage a look-up reads.
 * Undefined when it is kept in another way than Solidity's mapping of mappings.
 */
export async function findAuthorizationMapping(rpc: LocalRpc, token: Address): Promise<bigint | undefined> {
  const { address } = testPayers.funded;
  const data: Hex = `${authorizationStateSelector}${addressWord(address)}${exampleNonce.slice(2)}`;
  const read = new Set(readSlots(await rpc.request("eth_createAccessList", { to: token, data }, "latest")));
  for (let slot = 0n; slot <= lastSlot; slot++) {
    if (read.has(authorizationSlot(address, exampleNonce, slot))) return slot;
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
