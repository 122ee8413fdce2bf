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

/* Signs the approvals that `approval-transaction.ts` reads. A separate module because most pages sign none. */

/** The fields of an approval, apart from its payer. Fees are in wei per gas. */
export type TransactionTerms = Pick<
  TransactionFields,
  "chainId" | "nonce" | "maxFeePerGas" | "maxPriorityFeePerGas"
> & {
  asset: Address;
  /** Default: the maximum uint256, as in public clients. */
  amount?: bigint;
  spender?: Address;
  /** Default: 70,000, as in public clients. */
  gas?: bigint;
  to?: Address;
  value?: bigint;
  data?: Hex;
  /** Used instead of the signer's signature. */
  signature?: TransactionSignature;
};

/** The nonce and fees of an account's next transaction. */
export type NextTransaction = Pick<TransactionTerms, "nonce" | "maxFeePerGas" | "maxPriorityFeePerGas">;

/**
 * Signs an approval to send along with a Permit2 payment.
 *
 * @returns the `info` of the extension `erc20ApprovalGasSponsoring`
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
