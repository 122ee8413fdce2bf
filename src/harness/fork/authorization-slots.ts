import type { LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { authorizationUse } from "../../methods/exact-eip3009/on-chain/eip3009-state.ts";
import { type Address, type Hex, readQuantity } from "../../protocol/hex.ts";
import { membersOf } from "../../util/json.ts";
import { accountSlot, nestedSlot, slotWithin } from "../setup/storage-slots.ts";

/**
 * The storage slots of a token that hold authorization states, derived from the calldata seen so far. A recording cannot
 * hold them, because their keys come from nonces that are random for each payment. But an authorization signed after the
 * recording cannot be used on the recorded chain, so the answer is known anyway.
 */
export type AuthorizationSlots = {
  /** Adds the calldata of a call or transaction. Each pair of an address and a word in it may be an authorization. */
  note(calldata: Hex): void;
  /** Returns true if a slot belongs to an authorization in the calldata seen so far. */
  has(slot: bigint): boolean;
};

/** How many calls are kept until they are needed; enough for a few thousand payments in flight. */
const mostNoted = 10_000;

/** @param mappingSlot the slot of the token's `mapping(address authorizer => mapping(bytes32 nonce => …))` */
export function createAuthorizationSlots(mappingSlot: bigint): AuthorizationSlots {
  const slots = new Set<bigint>();
  let noted: Hex[] = [];
  return {
    note(calldata) {
      noted.push(calldata);
      if (noted.length > mostNoted) noted = noted.slice(-mostNoted / 2);
    },
    has(slot) {
      // Computed lazily: most calldata is never needed.
      for (const calldata of noted) addSlotsOf(calldata, mappingSlot, slots);
      noted = [];
      return slots.has(slot);
    },
  };
}

function addSlotsOf(calldata: Hex, mappingSlot: bigint, slots: Set<bigint>): void {
  const words = wordsOf(calldata);
  for (const word of words) {
    if (!isAddressWord(word)) continue;
    const outer = accountSlot(`0x${word.slice(24)}`, mappingSlot);
    for (const nonce of words) slots.add(slotWithin(outer, nonce));
  }
}

/** Amounts, times and offsets are smaller, and no real account has an address with that many leading zeros. */
function isAddressWord(word: string): boolean {
  const value = BigInt(`0x${word}`);
  return value >= 1n << 96n && value < 1n << 160n;
}

/**
 * The distinct 32-byte words after the selector, at both alignments: also those of a call nested in the calldata, whose own
 * selector shifts its words by 4 bytes (as when a wallet is deployed first).
 */
function wordsOf(calldata: Hex): ReadonlySet<string> {
  const digits = calldata.slice(10).toLowerCase();
  const selectorDigits = 8;
  return new Set(
    [digits, digits.slice(selectorDigits)].flatMap((behind) => behind.match(/[0-9a-f]{64}/g) ?? []),
  );
}

/** Fixed, so that a recording holds the answers for it. */
const exampleNonce: Hex = `0x${"402".padStart(64, "0")}`;

/** Tokens have a few dozen slots before their mappings, plus gaps of 50 slots for each base contract. */
const lastSlot = 1_000n;

/**
 * Finds the slot of a token's mapping of authorization states by watching which storage a lookup for an account reads.
 * Undefined if the states are not in a Solidity mapping of mappings.
 */
export async function findMappingSlot(
  rpc: LocalRpc,
  token: Address,
  account: Address,
): Promise<bigint | undefined> {
  const { data } = authorizationUse({ asset: token, payer: account, nonce: exampleNonce }).view;
  const read = new Set(readSlots(await rpc.request("eth_createAccessList", { to: token, data }, "latest")));
  for (let slot = 0n; slot <= lastSlot; slot++) {
    if (read.has(nestedSlot(account, exampleNonce, slot))) return slot;
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
