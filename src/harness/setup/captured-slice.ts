import { type LocalCall, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { accountSlot, nestedSlot } from "../../methods/exact-eip3009/on-chain/storage-slots.ts";
import type { PayerState } from "../../methods/payment-state.ts";
import { bitOf } from "../../methods/permit2/on-chain/permit2-state.ts";
import { permit2Address } from "../../methods/permit2/permit.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { addressWord, sameAddress, uintWord } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { LocalNode } from "../nodes/nodes.ts";
import { placedAccounts } from "./test-accounts.ts";

/** The chain state that decided a payment, to be restored on a chain. Amounts are in the asset's smallest unit. */
export type CapturedSlice = PayerState & {
  payer: Address;
  nonce: Hex;
  /** The head. */
  blockNumber: number;
  /** The head's time, in unix seconds. */
  time: number;
  payerHasCode: boolean;
  /** The answer of a contract at the payer's address to every signature. */
  walletAccepts: boolean;
  /** True if that contract is there although the payer is a plain account, or a test payer of another kind. */
  isStandIn: boolean;
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
const slots = { paused: 1n, balances: 9n, authorizations: 16n, allowances: 10n };

/** Where Permit2 keeps the nonces, as its stand-in does. */
const permit2Bitmaps = 0n;

/** True if an account is blacklisted, in the same word as its balance. */
const blacklistedBit = 1n << 255n;

/** True if the token is paused, in the same word as the address of the pauser. */
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
  const { payer, blockNumber, time } = slice;
  const pausedSlot: Hex = `0x${uintWord(slots.paused)}`;
  const [pauser, head] = await node.batch([
    ["eth_getStorageAt", address, pausedSlot, "latest"],
    ["eth_blockNumber"],
  ]);
  const write = (slot: Hex, value: bigint) => storageWrite(address, slot, value);
  const balance = slice.payerBalance | (slice.payerBlacklisted ? blacklistedBit : 0n);
  const balanceSlot = accountSlot(payer, slots.balances);
  await node.batch([
    write(balanceSlot, balance),
    write(pausedSlot, BigInt(String(pauser)) | (slice.assetPaused ? pausedBit : 0n)),
    ...nonceOf(slice, { address }),
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

function storageWrite(address: Address, slot: Hex, value: bigint): LocalCall {
  return ["anvil_setStorageAt", address, slot, `0x${uintWord(value)}`];
}

/** The calls that read the nonce, and for Permit2 the allowance. */
function nonceOf(
  { payer, nonce, payerAllowance, authorizationUsed: isUsed }: CapturedSlice,
  { address }: Pick<Asset, "address">,
): LocalCall[] {
  const slot = (key: Hex, mapping: bigint): Hex => `0x${uintWord(nestedSlot(payer, key, mapping))}`;
  if (payerAllowance === undefined)
    return [storageWrite(address, slot(nonce, slots.authorizations), isUsed ? 1n : 0n)];
  const { word, bit } = bitOf({ nonce });
  const spender: Hex = `0x${addressWord(permit2Address)}`;
  return [
    storageWrite(address, slot(spender, slots.allowances), payerAllowance),
    storageWrite(permit2Address, slot(`0x${uintWord(word)}`, permit2Bitmaps), isUsed ? bit : 0n),
  ];
}

/** The code at the payer's address. Test payers have theirs already. */
function codeOf({ payer, payerHasCode, walletAccepts, isStandIn }: CapturedSlice): LocalCall[] {
  if (!payerHasCode) return [["anvil_setCode", payer, "0x"]];
  if (!isStandIn && placedAccounts.some((account) => sameAddress(account, payer))) return [];
  return [["anvil_setCode", payer, walletAccepts ? wallets.accepting : wallets.refusing]];
}
