import { type Address, addressWord, type Hex, keccak256, sameAddress, uintWord } from "./hex.ts";

/**
 * What a payer has signed, in the words of no way to pay in particular. Each way to pay (see `methods/`) reads its own
 * messages into it, and reads its own messages from it again.
 */
export type SignedPayment = {
  /** The name of the way to pay. */
  readonly method: string;
  readonly payer: Address;
  /** Where the signature lets the money go. */
  readonly payTo: Address;
  readonly asset: Address;
  /** The most that the signature allows to move, in the asset's smallest unit: of scheme "exact" the very amount. */
  readonly limit: bigint;
  /** When it may be settled: unix seconds, both included. */
  readonly window: { readonly first: bigint; readonly last: bigint };
  /** What makes it one payment: used once by this payer in the nonce space, which is the contract that keeps nonces. */
  readonly nonce: Hex;
  readonly nonceSpace: Address;
  readonly signature: Hex;
  /** What else the way to pay needs to settle it, as text that it alone reads; null where the rest says all. */
  readonly payload: string | null;
};

/** Where the signatures of payments may let the money go: see {@link payToPolicies}. */
export type PayToPolicy = (typeof payToPolicies)[number];

/**
 * - `contract`: to the facilitator contract, which forwards it to the organization's recipient in the same transaction;
 * - `recipients`: also straight to the organization's own recipient on the network;
 * - `any`: also straight to any other address, as public facilitators have it.
 */
export const payToPolicies = ["contract", "recipients", "any"] as const;

/** Whether the money goes straight to where it was signed to, and not through the facilitator contract. */
export function goesStraight(
  { payTo }: Pick<SignedPayment, "payTo">,
  { facilitatorContract }: { facilitatorContract: Address },
): boolean {
  return !sameAddress(payTo, facilitatorContract);
}

/** What a shop names as `payTo` that is paid at a recipient: the recipient itself, where that is allowed. */
export function usualPayTo(
  {
    facilitatorContract,
    payTo = "contract",
  }: { facilitatorContract: Address; payTo?: PayToPolicy | undefined },
  recipient: Address | undefined,
): Address {
  return payTo === "contract" ? facilitatorContract : (recipient ?? facilitatorContract);
}

/**
 * The identity of a payment, and of its settlement: keccak256 of (chainId, nonce space, payer, nonce), each as one ABI
 * word. Anyone who holds the payment can compute it. The nonce space of an EIP-3009 payment is its asset.
 */
export function settlementId(chainId: number, nonceSpace: Address, payer: Address, nonce: Hex): Hex {
  return keccak256(
    `0x${uintWord(BigInt(chainId))}${addressWord(nonceSpace)}${addressWord(payer)}${nonce.slice(2).toLowerCase()}`,
  );
}
