import type { Address } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { type Approval, approvalDigest } from "../approval.ts";
import { permit2Address } from "./permit.ts";
import type { PermitSigner } from "./sign-permit.ts";

/** The Permit2 approval that a payer signs for a token (EIP-2612). */
export type ApprovalTerms = Pick<Approval, "amount" | "nonce" | "deadline"> & {
  asset: Pick<Asset, "name" | "version" | "address">;
  chainId: number;
  /** The payer, if it is not the signer itself. */
  from?: Address;
  /** Default: Permit2. Any other spender is refused. */
  spender?: Address;
};

/**
 * Signs an approval to send along with a Permit2 payment.
 *
 * @returns the `info` of the extension `eip2612GasSponsoring`
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
