import type { ReasonNames } from "./catalogue.ts";
import {
  type Address,
  addressWord,
  byteWords,
  type Hex,
  isAddress,
  keccak256,
  sameAddress,
  uintWord,
  wordAt,
} from "./hex.ts";
import type { Asset } from "./networks.ts";

/** A signed payment in a common form. Each payment method (see `methods/`) converts its own messages to and from it. */
export type SignedPayment = {
  /** The name of the payment method. */
  readonly method: string;
  readonly payer: Address;
  /** The recipient that the signature allows. */
  readonly payTo: Address;
  readonly asset: Address;
  /** The most that the signature allows to move, in the asset's smallest unit; for scheme “exact” the exact amount. */
  readonly limit: bigint;
  /** When it may be settled, in Unix seconds, both inclusive. */
  readonly window: { readonly first: bigint; readonly last: bigint };
  /** Makes the payment unique: each payer can use it once per nonce space, the contract that keeps the nonces. */
  readonly nonce: Hex;
  readonly nonceSpace: Address;
  readonly signature: Hex;
  /** Other values that the payment method needs for settling, as text that only the method reads; null if it needs none. */
  readonly payload: string | null;
};

/** The names that messages use for the members of a signed payment; one table per payment method. */
export type PaymentWords = {
  /** The members for payer, nonce, recipient and amount, such as `authorization.to`. */
  readonly payer: string;
  readonly nonce: string;
  readonly payTo: string;
  readonly limit: string;
  /** The member that names the token, if there is one. */
  readonly asset?: string;
  /**
   * The members for the window's bounds, their wording, and whether the bounds belong to the window; in EIP-3009 they do not.
   */
  readonly start: string;
  readonly end: string;
  readonly startsSaid: string;
  readonly endsSaid: string;
  readonly includesBounds: boolean;
  /** The method's own names for reasons that other methods name differently. */
  readonly reasons: ReasonNames;
  /** The table of the reference facilitator's reasons for this method; see `reference-reasons.ts`. */
  readonly reference: "eip3009" | "permit2" | "upto";
  /** Who finally decides whether a signature counts, such as `The token`. */
  readonly judge: string;
  /** Describes the EIP-712 domain of the signature, for messages. */
  domain(asset: Asset): string;
};

/** The bounds of a window as they were signed, in Unix seconds. */
export function boundsOf(
  { first, last }: SignedPayment["window"],
  { includesBounds }: Pick<PaymentWords, "includesBounds">,
): { start: bigint; end: bigint } {
  return includesBounds ? { start: first, end: last } : { start: first - 1n, end: last + 1n };
}

/** Where signed payments may send the money; see {@link payToPolicies}. */
export type PayToPolicy = (typeof payToPolicies)[number];

/**
 * - `contract`: to the facilitator contract, which forwards it to the organization's recipient in the same transaction;
 * - `recipients`: also directly to the organization's own recipient on the network;
 * - `any`: also directly to any other address, as with public facilitators.
 */
export const payToPolicies = ["contract", "recipients", "any"] as const;

/** True if the money goes directly to the signed recipient, and not through the facilitator contract. */
export function goesStraight(
  { payTo }: Pick<SignedPayment, "payTo">,
  { facilitatorContract }: { facilitatorContract: Address },
): boolean {
  return !sameAddress(payTo, facilitatorContract);
}

/** The `payTo` of a shop that is paid at a recipient: the recipient itself, if the policy allows it. */
export function usualPayTo(
  {
    facilitatorContract,
    payTo = "contract",
  }: { facilitatorContract: Address; payTo?: PayToPolicy | undefined },
  recipient: Address | undefined,
): Address {
  return payTo === "contract" ? facilitatorContract : (recipient ?? facilitatorContract);
}

/** Shared by requests for the same payment: its digest, combined with the settled amount if below the maximum. */
export function fingerprintOf(digest: Hex, amount: bigint, limit: bigint): Hex {
  return amount === limit ? digest : keccak256(`${digest}${uintWord(amount)}`);
}

/**
 * The id of a payment and of its settlement: keccak256 of (chainId, nonce space, payer, nonce), each as one ABI word.
 * Anyone with the payment can compute it. The nonce space of an EIP-3009 payment is its asset.
 */
export function settlementId(chainId: number, nonceSpace: Address, payer: Address, nonce: Hex): Hex {
  return keccak256(
    `0x${uintWord(BigInt(chainId))}${addressWord(nonceSpace)}${addressWord(payer)}${nonce.slice(2).toLowerCase()}`,
  );
}

/** A plain account's signature in the form USDC expects: r, s and v. */
const ecdsaSignature = /^0x[0-9a-fA-F]{130}$/;

/** Half the order of secp256k1. USDC rejects a larger s, since (r, n - s) would be a second valid signature. */
export const highestS = "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0";

/** The standard values of v, and those that some wallets write. */
const recoveryIds: ReadonlyMap<string, 0 | 1> = new Map([
  ["1b", 0],
  ["1c", 1],
  ["00", 0],
  ["01", 1],
]);

/** A plain signature: r and s as 128 hexadecimal digits, and the recovery id. */
export type EcdsaSignature = { rs: string; recoveryId: 0 | 1 };

/**
 * Reads a plain signature in a form that the token could accept. Undefined if it is not 65 bytes, its s is in the
 * upper half, or its v is not 27, 28, 0 or 1. Signatures of other lengths are for wallets (EIP-1271).
 */
export function readEcdsaSignature(signature: Hex): EcdsaSignature | undefined {
  if (!ecdsaSignature.test(signature)) return undefined;
  const recoveryId = recoveryIds.get(signature.slice(130).toLowerCase());
  if (recoveryId === undefined || signature.slice(66, 130).toLowerCase() > highestS) return undefined;
  return { rs: signature.slice(2, 130), recoveryId };
}

/** The 32 bytes that end the signature of an undeployed wallet (ERC-6492). */
const erc6492Suffix = "6492".repeat(16);

/** True if a signature claims to be from an undeployed wallet (ERC-6492). */
export function isErc6492(signature: Hex): boolean {
  return signature.toLowerCase().endsWith(erc6492Suffix);
}

/**
 * Builds the signature of an undeployed wallet (ERC-6492): `abi.encode(factory, factoryCalldata, signature)` and the
 * suffix. The wallet's owner signs; calling the factory deploys the wallet.
 */
export function wrapErc6492(factory: Address, factoryCalldata: Hex, signature: Hex): Hex {
  const calldata = byteWords(factoryCalldata);
  const head = 3 * 32;
  const offsets = [uintWord(BigInt(head)), uintWord(BigInt(head + calldata.length / 2))];
  return `0x${addressWord(factory)}${offsets.join("")}${calldata}${byteWords(signature)}${erc6492Suffix}`;
}

/** The parts of a signature built by {@link wrapErc6492}. */
export type WalletDeployment = { factory: Address; factoryCalldata: Hex; signature: Hex };

/** Takes such a signature apart; undefined if it is not one, or not canonically encoded. */
export function unwrapErc6492(signature: Hex): WalletDeployment | undefined {
  if (!isErc6492(signature)) return undefined;
  const words: Hex = `0x${signature.slice(2, -erc6492Suffix.length)}`;
  const [account = "", , signatureAt = ""] = [0, 1, 2].map((index) => wordAt(words, index));
  const factory = `0x${account.slice(24)}`;
  const factoryCalldata = bytesAt(words, 3);
  // An index in words; if it is out of bounds, there are no bytes there.
  const inner = bytesAt(words, Number(BigInt(`0x${signatureAt || "0"}`) / 32n));
  if (!isAddress(factory) || factoryCalldata === undefined || inner === undefined) return undefined;
  const isCanonical = wrapErc6492(factory, factoryCalldata, inner).toLowerCase() === signature.toLowerCase();
  return isCanonical ? { factory, factoryCalldata, signature: inner } : undefined;
}

/** Reads the bytes whose length is the word at `index`. */
function bytesAt(words: Hex, index: number): Hex | undefined {
  const length = Number(BigInt(`0x${wordAt(words, index) ?? "0"}`));
  const start = 2 + (index + 1) * 64;
  const digits = words.slice(start, start + 2 * length);
  return digits.length === 2 * length ? `0x${digits}` : undefined;
}

/** The signature to pass to the token: for an undeployed wallet, the inner one, since the wallet is deployed first. */
export function tokenSignature(signature: Hex): Hex {
  return unwrapErc6492(signature)?.signature ?? signature;
}

/** Stands in for the code of a wallet deployed with its payment (alike for one factory); null if there is none. */
export function codeToCome(signature: Hex): Hex | null {
  const deployment = unwrapErc6492(signature);
  return deployment === undefined ? null : keccak256(deployment.factory);
}
