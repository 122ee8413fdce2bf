import {
  encodeTransaction,
  type TransactionFields,
  type TransactionSignature,
} from "../../protocol/encode-transaction.ts";
import { type Address, addressWord, type Hex, keccak256, uintWord } from "../../protocol/hex.ts";
import { readEcdsaSignature, tokenSignature } from "../../protocol/signed-payment.ts";
import { maxUint256 } from "../../protocol/wire-values.ts";
import { approveSelector, type transactionMembers } from "../approval-transaction.ts";
import { permit2Address } from "./permit.ts";

/* Signs what `approval-transaction.ts` reads. A module of its own, since most pages sign none. */

/** The members of an approval besides its payer. Fees are in wei per gas. */
export type TransactionTerms = Pick<
  TransactionFields,
  "chainId" | "nonce" | "maxFeePerGas" | "maxPriorityFeePerGas"
> & {
  asset: Address;
  /** All by default, as the public clients have it. */
  amount?: bigint;
  spender?: Address;
  /** 70,000 by default, as the public clients have it. */
  gas?: bigint;
  to?: Address;
  value?: bigint;
  data?: Hex;
  /** Instead of the signer's. */
  signature?: TransactionSignature;
};

/** The nonce and fees of an account's next transaction. */
export type NextTransaction = Pick<TransactionTerms, "nonce" | "maxFeePerGas" | "maxPriorityFeePerGas">;

/**
 * Signs an approval that is to be sent with a payment by Permit2.
 *
 * @returns `info` of the extension `erc20ApprovalGasSponsoring`
 */
export async function signApprovalTransaction(
  signer: { readonly address: Address; signDigest(digest: Hex): Hex | Promise<Hex> },
  {
    asset,
    amount = maxUint256,
    spender = permit2Address,
    gas = 70_000n,
    signature: other,
    ...terms
  }: TransactionTerms,
): Promise<Record<(typeof transactionMembers)[number], string>> {
  const data: Hex = `${approveSelector}${addressWord(spender)}${uintWord(amount)}`;
  const transaction = { to: asset, data, gas, ...terms };
  const signature = readEcdsaSignature(
    tokenSignature(await signer.signDigest(keccak256(encodeTransaction(transaction)))),
  );
  if (signature === undefined) throw new Error("the signer made no plain signature");
  const { rs, recoveryId: yParity } = signature;
  const signed = { r: rs.slice(0, 64), s: rs.slice(64), yParity };
  return {
    from: signer.address,
    asset,
    spender,
    amount: `${amount}`,
    signedTransaction: encodeTransaction(transaction, other ?? signed),
    version: "1",
  };
}
