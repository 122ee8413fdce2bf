import { type Address, type Hex, toHex } from "../../protocol/hex.ts";
import { aText, aUint256, type Wanted } from "../../util/given.ts";
import {
  exactProxyAddress,
  type Permit,
  permit2Address,
  permit2Separator,
  permitDigest,
  permitTypes,
  uptoProxyAddress,
} from "./permit.ts";

/** Signs for a payer with any payment method: a viem local account, or anything with the same two members. */
export type PayerSigner = {
  readonly address: Address;
  signTypedData(typedData: {
    domain: { name: string; version?: string; chainId: number; verifyingContract: Address };
    types: Record<string, readonly { readonly name: string; readonly type: string }[]>;
    primaryType: string;
    message: Record<string, unknown>;
  }): Promise<Hex>;
};

/** The same, or a signer of raw digests. */
export type PermitSigner =
  | PayerSigner
  | {
      readonly address: Address;
      /** The account of the key that signs, if the address is a wallet's. */
      readonly owner?: Address | undefined;
      signDigest(digest: Hex): Hex | Promise<Hex>;
    };

/** The payer's terms: a permit with defaults for nonce, spender and start. */
export type PermitTerms = Pick<Permit, "token" | "amount" | "to" | "deadline"> & {
  chainId: number;
  /** Scheme "upto": the only account that may submit it. */
  facilitator?: Address | undefined;
  /** Default: 0, valid at once. */
  validAfter?: bigint;
  /** Default: random. */
  nonce?: bigint;
  /** Default: the x402 proxy for the scheme. */
  spender?: Address;
  /** The payer, if it is a smart wallet that the signer controls. */
  from?: Address;
};

/** The type of each field of a permit, apart from the payer. */
export const permitMembers: Readonly<Record<keyof Omit<Permit, "from">, Wanted>> = {
  token: aText,
  amount: aUint256,
  spender: aText,
  nonce: aUint256,
  deadline: aUint256,
  to: aText,
  facilitator: aText,
  validAfter: aUint256,
};

/** Signs a Permit2 payment as the payer: scheme "upto" if a facilitator is given, otherwise "exact". */
export async function signPermit(
  signer: PermitSigner,
  { chainId, ...terms }: PermitTerms,
): Promise<{ permit: Permit; signature: Hex }> {
  const usualSpender = terms.facilitator === undefined ? exactProxyAddress : uptoProxyAddress;
  const permit: Permit = {
    from: signer.address,
    spender: usualSpender,
    nonce: BigInt(toHex(globalThis.crypto.getRandomValues(new Uint8Array(32)))),
    validAfter: 0n,
    ...terms,
  };
  const signature =
    "signDigest" in signer
      ? await signer.signDigest(permitDigest(permit2Separator(chainId), permit))
      : await signer.signTypedData(typedPermit(permit, chainId));
  return { permit, signature };
}

/** A permit as EIP-712 typed data. */
export function typedPermit(permit: Permit, chainId: number) {
  const { token, amount, spender, nonce, deadline, to, facilitator, validAfter } = permit;
  return {
    domain: { name: "Permit2", chainId, verifyingContract: permit2Address },
    types: permitTypes(permit),
    primaryType: "PermitWitnessTransferFrom",
    message: {
      permitted: { token, amount },
      spender,
      nonce,
      deadline,
      witness: { to, ...(facilitator !== undefined && { facilitator }), validAfter },
    },
  };
}
