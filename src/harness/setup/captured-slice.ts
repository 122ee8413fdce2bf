import { type LocalCall, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { authorizationSlot } from "../../methods/exact-eip3009/on-chain/storage-slots.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { addressWord, keccak256, sameAddress, uintWord } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { LocalNode } from "../nodes/nodes.ts";
import { placedAccounts } from "./test-accounts.ts";

/** What a payment was judged by, which a chain is to hold again. Amounts are in the asset's smallest unit. */
export type CapturedSlice = {
  payer: Address;
  nonce: Hex;
  /** The head. */
  blockNumber: number;
  /** The head's time, in unix seconds. */
  time: number;
  payerBalance: bigint;
  payerHasCode: boolean;
  /** What a contract at the payer's address is to say of every signature. */
  walletAccepts: boolean;
  /** Whether that contract is there although the payer is a plain account, or a test payer of another kind. */
  isStandIn: boolean;
  authorizationUsed: boolean;
  payerBlacklisted: boolean;
  assetPaused: boolean;
};

/** A chain begins this many blocks, of two seconds each, before the head: room for what is put in place. */
const roomBlocks = 60;

/** When and where the chain of a slice begins. */
export function beginningOf({ blockNumber, time }: CapturedSlice): {
  genesisTime: number;
  genesisBlock: number;
} {
  return { genesisTime: time - 2 * roomBlocks, genesisBlock: Math.max(0, blockNumber - roomBlocks) };
}

/** The slots of FiatTokenV2_2, which the mock has too. */
const slots = { paused: 1n, balances: 9n, authorizations: 16n };

/** Whether an account is blacklisted, in the same word as its balance. */
const blacklistedBit = 1n << 255n;

/** Whether the token is paused, in the same word as the address of the pauser. */
const pausedBit = 1n << 160n;

/** Code that answers every call: with the word that EIP-1271 wants, or with zeros. */
const wallets = { accepting: "0x631626ba7e60e01b5f5260205ff3", refusing: "0x5f5f5260205ff3" } as const;

/**
 * Puts a slice in place on a chain of the mock token, and mines up to its head: the block of its number, where the chain
 * is not further yet, and of its time.
 *
 * @throws {KitError} when that cannot be
 */
export async function placeSlice(node: LocalNode, { address }: Asset, slice: CapturedSlice): Promise<void> {
  const { payer, nonce, blockNumber, time } = slice;
  const pausedSlot = `0x${uintWord(slots.paused)}`;
  const [pauser, head] = await node.batch([
    ["eth_getStorageAt", address, pausedSlot, "latest"],
    ["eth_blockNumber"],
  ]);
  const write = (slot: bigint | Hex, value: bigint): LocalCall => [
    "anvil_setStorageAt",
    address,
    typeof slot === "bigint" ? `0x${uintWord(slot)}` : slot,
    `0x${uintWord(value)}`,
  ];
  const balance = slice.payerBalance | (slice.payerBlacklisted ? blacklistedBit : 0n);
  const balanceSlot = keccak256(`0x${addressWord(payer)}${uintWord(slots.balances)}`);
  await node.batch([
    write(balanceSlot, balance),
    write(slots.paused, BigInt(String(pauser)) | (slice.assetPaused ? pausedBit : 0n)),
    write(authorizationSlot(payer, nonce, slots.authorizations), slice.authorizationUsed ? 1n : 0n),
    ...codeOf(slice),
  ]);
  const missing = blockNumber - 1 - Number(head);
  try {
    if (missing > 0) await node.request("anvil_mine", `0x${missing.toString(16)}`);
    await node.request("evm_setNextBlockTimestamp", time);
    await node.request("evm_mine");
  } catch (cause) {
    if (!(cause instanceof RpcRefusal)) throw cause;
    throw new KitError(`The ${node.name} chain cannot be brought to the time of the capture, ${time}`, {
      cause,
    });
  }
}

/** The code at the payer's address. Test payers have theirs already. */
function codeOf({ payer, payerHasCode, walletAccepts, isStandIn }: CapturedSlice): LocalCall[] {
  if (!payerHasCode) return [["anvil_setCode", payer, "0x"]];
  if (!isStandIn && placedAccounts.some((account) => sameAddress(account, payer))) return [];
  return [["anvil_setCode", payer, walletAccepts ? wallets.accepting : wallets.refusing]];
}
