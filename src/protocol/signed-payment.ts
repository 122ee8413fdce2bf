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

/**
 * A signed payment, in the words of no payment method in particular. Each payment method (see `methods/`) reads its own
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
  /** Makes it one payment: each payer uses it once in the nonce space, which is the contract that keeps the nonces. */
  readonly nonce: Hex;
  readonly nonceSpace: Address;
  readonly signature: Hex;
  /** The other values that the payment method needs to settle it, as text that only the method reads; null where it needs none. */
  readonly payload: string | null;
};

/** The names that messages give to the members of a signed payment: one table for each payment method. */
export type PaymentWords = {
  /** Whose money it is, what is used once, where it lets the money go, and how much: members, such as `authorization.to`. */
  readonly payer: string;
  readonly nonce: string;
  readonly payTo: string;
  readonly limit: string;
  /** The member that names the token, where one does. */
  readonly asset?: string;
  /** Its bounds by their names, how they are said, and whether the window has them in itself: EIP-3009 leaves both out. */
  readonly start: string;
  readonly end: string;
  readonly startsSaid: string;
  readonly endsSaid: string;
  readonly includesBounds: boolean;
  /** Its own names for reasons that other methods name differently. */
  readonly reasons: ReasonNames;
  /** By which names the reference facilitator refuses it: see `reference-reasons.ts`. */
  readonly reference: "eip3009" | "permit2" | "upto";
  /** Who decides in the end whether a signature counts: `The token`. */
  readonly judge: string;
  /** The EIP-712 domain of its signature, for messages. */
  domain(asset: Asset): string;
};

/** The bounds of a payment as they were signed, unix seconds. */
export function boundsOf(
  { first, last }: SignedPayment["window"],
  { includesBounds }: Pick<PaymentWords, "includesBounds">,
): { start: bigint; end: bigint } {
  return includesBounds ? { start: first, end: last } : { start: first - 1n, end: last + 1n };
}

/** Where the signatures of payments may let the money go: see {@link payToPolicies}. */
export type PayToPolicy = (typeof payToPolicies)[number];

/**
 * - `contract`: to the facilitator contract, which forwards it to the organization's recipient in the same transaction;
 * - `recipients`: also straight to the organization's own recipient on the network;
 * - `any`: also straight to any other address, as public facilitators have it.
 */
export const payToPolicies = ["contract", "recipients", "any"] as const;

/** Returns true if the money goes straight to where it was signed to, and not through the facilitator contract. */
export function goesStraight(
  { payTo }: Pick<SignedPayment, "payTo">,
  { facilitatorContract }: { facilitatorContract: Address },
): boolean {
  return !sameAddress(payTo, facilitatorContract);
}

/** The `payTo` of a shop that is paid at a recipient: the recipient itself, where that is allowed. */
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
 * The value that two requests for the same payment share: its digest, and with less than all that it allows, the amount
 * that is settled.
 */
export function fingerprintOf(digest: Hex, amount: bigint, limit: bigint): Hex {
  return amount === limit ? digest : keccak256(`${digest}${uintWord(amount)}`);
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

/** The form of a plain account's signature in USDC: r, s and v. */
const ecdsaSignature = /^0x[0-9a-fA-F]{130}$/;

/** Half the order of secp256k1. USDC refuses an s above it, since (r, n - s) would sign the same. */
export const highestS = "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0";

/** The right values of v, and those of some wallets. */
const recoveryIds: ReadonlyMap<string, 0 | 1> = new Map([
  ["1b", 0],
  ["1c", 1],
  ["00", 0],
  ["01", 1],
]);

/** The parts of a plain signature: r and s as 128 hexadecimal digits, and which of two keys made it. */
export type EcdsaSignature = { rs: string; recoveryId: 0 | 1 };

/**
 * Reads a plain signature in a form that the token could accept; undefined when it is not 65 bytes, its s is in the
 * upper half, or its v is other than 27, 28, 0 or 1. Signatures of other lengths are for wallets (EIP-1271).
 */
export function readEcdsaSignature(signature: Hex): EcdsaSignature | undefined {
  if (!ecdsaSignature.test(signature)) return undefined;
  const recoveryId = recoveryIds.get(signature.slice(130).toLowerCase());
  if (recoveryId === undefined || signature.slice(66, 130).toLowerCase() > highestS) return undefined;
  return { rs: signature.slice(2, 130), recoveryId };
}

/** The 32 bytes that end the signature of a wallet that is not deployed yet (ERC-6492). */
const erc6492Suffix = "6492".repeat(16);

/** Returns true if a signature says that it is of a wallet that is not deployed yet (ERC-6492). */
export function isErc6492(signature: Hex): boolean {
  return signature.toLowerCase().endsWith(erc6492Suffix);
}

/**
 * The signature of a wallet that is not deployed yet (ERC-6492): `abi.encode(factory, factoryCalldata, signature)` and
 * the suffix. The wallet's owner signs; calling the factory deploys the wallet.
 */
export function wrapErc6492(factory: Address, factoryCalldata: Hex, signature: Hex): Hex {
  const calldata = byteWords(factoryCalldata);
  const head = 3 * 32;
  const offsets = [uintWord(BigInt(head)), uintWord(BigInt(head + calldata.length / 2))];
  return `0x${addressWord(factory)}${offsets.join("")}${calldata}${byteWords(signature)}${erc6492Suffix}`;
}

/** The parts of a signature that {@link wrapErc6492} has made. */
export type WalletDeployment = { factory: Address; factoryCalldata: Hex; signature: Hex };

/** Takes such a signature apart; undefined where it is none, or not in the one form that encoders give. */
export function unwrapErc6492(signature: Hex): WalletDeployment | undefined {
  if (!isErc6492(signature)) return undefined;
  const words: Hex = `0x${signature.slice(2, -erc6492Suffix.length)}`;
  const [account = "", , signatureAt = ""] = [0, 1, 2].map((index) => wordAt(words, index));
  const factory = `0x${account.slice(24)}`;
  const factoryCalldata = bytesAt(words, 3);
  // In words; what is out of all bounds has no bytes there.
  const inner = bytesAt(words, Number(BigInt(`0x${signatureAt || "0"}`) / 32n));
  if (!isAddress(factory) || factoryCalldata === undefined || inner === undefined) return undefined;
  const isCanonical = wrapErc6492(factory, factoryCalldata, inner).toLowerCase() === signature.toLowerCase();
  return isCanonical ? { factory, factoryCalldata, signature: inner } : undefined;
}

/** The bytes that begin with their length at a word. */
function bytesAt(words: Hex, index: number): Hex | undefined {
  const length = Number(BigInt(`0x${wordAt(words, index) ?? "0"}`));
  const start = 2 + (index + 1) * 64;
  const digits = words.slice(start, start + 2 * length);
  return digits.length === 2 * length ? `0x${digits}` : undefined;
}

/** The signature as the token takes it: that of a wallet without its deployment, which is made before. */
export function tokenSignature(signature: Hex): Hex {
  return unwrapErc6492(signature)?.signature ?? signature;
}

/**
 * Stands for the code of a wallet that is deployed with its payment: those of one factory are alike. Null where the signature
 * deploys none.
 */
export function codeToCome(signature: Hex): Hex | null {
  const deployment = unwrapErc6492(signature);
  return deployment === undefined ? null : keccak256(deployment.factory);
}
