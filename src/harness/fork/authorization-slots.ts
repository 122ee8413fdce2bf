import type { LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { authorizationUse } from "../../methods/exact-eip3009/on-chain/eip3009-state.ts";
import { type Address, type Hex, readQuantity } from "../../protocol/hex.ts";
import { membersOf } from "../../util/json.ts";
import { accountSlot, nestedSlot, slotWithin } from "../setup/storage-slots.ts";

/**
 * Which storage slots of a token say whether an authorization is used, found from the calls that were seen. A recording
 * cannot hold those: their keys come from random nonces, which every payment chooses anew. What was
 * signed after the recording cannot be used on the recorded chain, so the answer is known all the same.
 */
export type AuthorizationSlots = {
  /** Notes the calldata of a call or transaction: each pair of an address and a word in it may be an authorization. */
  note(calldata: Hex): void;
  /** Returns true if a slot belongs to an authorization that was noted. */
  has(slot: bigint): boolean;
};

/** How many calls are remembered until they are needed: those of some thousand payments under way. */
const mostNoted = 10_000;

/** @param mappingSlot where the token keeps `mapping(address authorizer => mapping(bytes32 nonce => …))` */
export function createAuthorizationSlots(mappingSlot: bigint): AuthorizationSlots {
  const slots = new Set<bigint>();
  let noted: Hex[] = [];
  return {
    note(calldata) {
      noted.push(calldata);
      if (noted.length > mostNoted) noted = noted.slice(-mostNoted / 2);
    },
    has(slot) {
      // Only now: most calldata is never asked about.
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

/** Amounts, times and offsets are smaller, and no key has an address with so many zeros. */
function isAddressWord(word: string): boolean {
  const value = BigInt(`0x${word}`);
  return value >= 1n << 96n && value < 1n << 160n;
}

/** The words behind the selector, and behind that of a call within it, as of a wallet that is deployed first; each once. */
function wordsOf(calldata: Hex): ReadonlySet<string> {
  const digits = calldata.slice(10).toLowerCase();
  const selectorDigits = 8;
  return new Set(
    [digits, digits.slice(selectorDigits)].flatMap((behind) => behind.match(/[0-9a-f]{64}/g) ?? []),
  );
}

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
