import {
  type Address,
  addressWord,
  type Hex,
  keccak256,
  keccak256Text,
  toHex,
  uintWord,
} from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import {
  anObject,
  aText,
  aUint256,
  needed,
  requireArgument,
  requireGiven,
  type Wanted,
  wholeNumber,
} from "../../util/given.ts";
import { digestUnder, domainSeparator } from "../eip712.ts";

/**
 * The message a payer signs: EIP-3009 `TransferWithAuthorization`.
 * `value` is in the asset's smallest unit; the times are unix seconds, both bounds exclusive on chain.
 */
export type Authorization = {
  from: Address;
  to: Address;
  value: bigint;
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
};

/** EIP-712 types of the message, in the format of wallets and viem. */
export const transferWithAuthorizationTypes = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

const members = "address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce";

/** The type hashes of EIP-3009. x402 payments are `TransferWithAuthorization`: 0x7c7c6cdb… */
export const authorizationTypehashes = {
  TransferWithAuthorization: keccak256Text(`TransferWithAuthorization(${members})`),
  ReceiveWithAuthorization: keccak256Text(`ReceiveWithAuthorization(${members})`),
} as const;

/** The EIP-712 digest that the payer signs. */
export function authorizationDigest(separator: Hex, authorization: Authorization, typehash?: Hex): Hex {
  return digestUnder(separator, authorizationHash(authorization, typehash));
}

/** The EIP-712 struct hash of an authorization. */
export function authorizationHash(
  { from, to, value, validAfter, validBefore, nonce }: Authorization,
  typehash: Hex = authorizationTypehashes.TransferWithAuthorization,
): Hex {
  return keccak256(
    `${typehash}${addressWord(from)}${addressWord(to)}${uintWord(value)}${uintWord(validAfter)}${uintWord(validBefore)}${nonce.slice(2)}`,
  );
}

/** Signs for a payer: a viem local account, or anything with the same two members. */
export type AuthorizationSigner = {
  address: Address;
  signTypedData(typedData: {
    domain: { name: string; version: string; chainId: number; verifyingContract: Address };
    types: typeof transferWithAuthorizationTypes;
    primaryType: "TransferWithAuthorization";
    message: Authorization;
  }): Promise<Hex>;
};

/** Creates an {@link AuthorizationSigner} from a function that signs digests. */
export function createDigestSigner(address: Address, sign: (digest: Hex) => Hex): AuthorizationSigner {
  return {
    address,
    async signTypedData({ domain: { name, version, chainId, verifyingContract }, message }) {
      const separator = domainSeparator({ name, version, address: verifyingContract }, chainId);
      return sign(authorizationDigest(separator, message));
    },
  };
}

/** The terms that a payer signs; times are unix seconds, `value` is in the asset's smallest unit. */
export type AuthorizationTerms = {
  asset: Pick<Asset, "name" | "version" | "address">;
  chainId: number;
  to: Address;
  value: bigint;
  /** Exclusive lower bound. Default: 0, valid at once. */
  validAfter?: bigint;
  /** Exclusive upper bound. */
  validBefore: bigint;
  /** 32 bytes. Default: random. */
  nonce?: Hex | undefined;
  /** The payer, if it is a smart wallet that the signer controls. */
  from?: Address;
};

const wantedTerms: Readonly<Record<keyof AuthorizationTerms, Wanted>> = {
  asset: needed(anObject),
  chainId: needed(wholeNumber(1, Number.MAX_SAFE_INTEGER)),
  to: needed(aText),
  value: needed(aUint256),
  validAfter: aUint256,
  validBefore: needed(aUint256),
  nonce: aText,
  from: aText,
};

/** The type of each field of an authorization, apart from the payer. */
export const authorizationMembers: Readonly<Record<keyof Omit<Authorization, "from">, Wanted>> = {
  to: aText,
  value: aUint256,
  validAfter: aUint256,
  validBefore: aUint256,
  nonce: aText,
};

const aSigner: Wanted = {
  what: "a signer with address and signTypedData",
  fits: (value) =>
    typeof Object(value).address === "string" && typeof Object(value).signTypedData === "function",
};

/**
 * Signs a payment as the payer: the EIP-3009 authorization and its EIP-712 signature.
 *
 * @example
 * const { authorization, signature } = await signAuthorization(privateKeyToAccount(key), {
 *   asset: networks.base.usdc, chainId: 8453, to: facilitatorContract,
 *   value: 10_000n, validBefore: BigInt(Math.floor(Date.now() / 1000) + 60),
 * });
 *
 * @throws ConfigurationError, a KitError, if a term is missing, misspelled or of the wrong type
 */
export async function signAuthorization(
  signer: AuthorizationSigner,
  terms: AuthorizationTerms,
): Promise<{ authorization: Authorization; signature: Hex }> {
  requireArgument("signer", signer, aSigner);
  requireGiven(terms, wantedTerms, "terms");
  const authorization: Authorization = {
    from: terms.from ?? signer.address,
    to: terms.to,
    value: terms.value,
    validAfter: terms.validAfter ?? 0n,
    validBefore: terms.validBefore,
    nonce: terms.nonce ?? toHex(globalThis.crypto.getRandomValues(new Uint8Array(32))),
  };
  const { address, name, version } = terms.asset;
  const signature = await signer.signTypedData({
    domain: { name, version, chainId: terms.chainId, verifyingContract: address },
    types: transferWithAuthorizationTypes,
    primaryType: "TransferWithAuthorization",
    message: authorization,
  });
  return { authorization, signature };
}

/** An authorization for JSON, with integers as decimal strings. */
export function authorizationJson(authorization: Authorization): Record<keyof Authorization, string> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return {
    from,
    to,
    value: value.toString(),
    validAfter: validAfter.toString(),
    validBefore: validBefore.toString(),
    nonce,
  };
}
