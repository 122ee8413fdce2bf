import { type Address, type Hex, toHex } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { aText, aUint256, type Wanted } from "../../util/given.ts";
import { type Approval, approvalDigest } from "./approval.ts";
import {
  exactProxyAddress,
  type Permit,
  permit2Address,
  permit2Separator,
  permitDigest,
  permitTypes,
  uptoProxyAddress,
} from "./permit.ts";

/** Signs for a payer, whatever the payment method: a viem local account, or anything with the same two members. */
export type PayerSigner = {
  readonly address: Address;
  signTypedData(typedData: {
    domain: { name: string; version?: string; chainId: number; verifyingContract: Address };
    types: Record<string, readonly { readonly name: string; readonly type: string }[]>;
    primaryType: string;
    message: Record<string, unknown>;
  }): Promise<Hex>;
};

/** The same, or what signs digests. */
export type PermitSigner =
  | PayerSigner
  | {
      readonly address: Address;
      /** The account of the key that signs, if the address is a wallet's. */
      readonly owner?: Address | undefined;
      signDigest(digest: Hex): Hex | Promise<Hex>;
    };

/** The terms of a payer: a permit with usual values for nonce, spender and beginning. */
export type PermitTerms = Pick<Permit, "token" | "amount" | "to" | "deadline"> & {
  chainId: number;
  /** Of scheme “upto”: who alone may submit it. */
  facilitator?: Address | undefined;
  /** 0 by default: valid at once. */
  validAfter?: bigint;
  /** Random by default. */
  nonce?: bigint;
  /** The proxy of x402 for the scheme by default. */
  spender?: Address;
  /** The payer, when it is not the signer itself: a smart wallet that the signer controls. */
  from?: Address;
};

/** The kind of value that each member of a permit takes, besides the payer. */
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

/** Signs a payment by Permit2 as the payer: of scheme “upto” where a facilitator is named, else of “exact”. */
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

/** A permit as wallets sign it. */
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

/** The approval of Permit2 that a payer signs for a token (EIP-2612). */
export type ApprovalTerms = Pick<Approval, "amount" | "nonce" | "deadline"> & {
  asset: Pick<Asset, "name" | "version" | "address">;
  chainId: number;
  /** The payer, when it is not the signer itself. */
  from?: Address;
  /** Permit2, unless it is to be refused. */
  spender?: Address;
};

/**
 * Signs an approval that is to be sent with a payment by Permit2.
 *
 * @returns `info` of the extension `eip2612GasSponsoring`
 */
export async function signApproval(
  signer: PermitSigner,
  { asset, chainId, amount, nonce, deadline, from = signer.address, spender = permit2Address }: ApprovalTerms,
): Promise<Record<keyof Approval | "version", string>> {
  const { name, version, address } = asset;
  const signature =
    "signDigest" in signer
      ? await signer.signDigest(approvalDigest({ from, spender, amount, nonce, deadline }, asset, chainId))
      : await signer.signTypedData({
          domain: { name, version, chainId, verifyingContract: address },
          types: {
            Permit: [
              { name: "owner", type: "address" },
              { name: "spender", type: "address" },
              ...["value", "nonce", "deadline"].map((name) => ({ name, type: "uint256" })),
            ],
          },
          primaryType: "Permit",
          message: { owner: from, spender, value: amount, nonce, deadline },
        });
  return {
    from,
    asset: address,
    spender,
    amount: `${amount}`,
    nonce: `${nonce}`,
    deadline: `${deadline}`,
    signature,
    version: "1",
  };
}
