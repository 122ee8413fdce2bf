import type { Address } from "../protocol/hex.ts";
import type { TransferMethod } from "../protocol/networks.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import {
  type Authorization,
  type AuthorizationSigner,
  type AuthorizationTerms,
  signAuthorization,
} from "./exact-eip3009/authorization.ts";
import { paymentOf } from "./exact-eip3009/eip3009-method.ts";
import type { Permit } from "./permit2/permit.ts";
import { permitPayment, permitTimes } from "./permit2/permit2-payload.ts";
import { type PayerSigner, type PermitSigner, signPermit } from "./permit2/sign-permit.ts";

/** The signed terms, and the payment method. */
export type PayerTerms = AuthorizationTerms & {
  method: TransferMethod;
  /** Of scheme “upto”: who alone may submit it. */
  facilitator?: Address | undefined;
  /** Members of the authorization that are to be signed as they stand here, right or wrong. */
  authorization?: Partial<Omit<Authorization, "from">> | undefined;
  /** The same of a permit. */
  permit?: Partial<Omit<Permit, "from">> | undefined;
};

/**
 * Signs a payment as the payer, whatever the payment method.
 *
 * @throws ConfigurationError, a KitError, when a term is missing, misspelt or of the wrong kind
 */
export async function signTerms(
  signer: PayerSigner | (AuthorizationSigner & PermitSigner),
  { method, facilitator, authorization, permit, ...terms }: PayerTerms,
): Promise<SignedPayment> {
  const { asset, chainId, to, value, nonce } = terms;
  if (method === "eip3009") {
    return paymentOf(asset.address, await signAuthorization(signer, { ...terms, ...authorization }));
  }
  return permitPayment(
    await signPermit(signer, {
      chainId,
      token: asset.address,
      to,
      amount: value,
      facilitator,
      ...permitTimes({ validAfter: 0n, ...terms }),
      ...(nonce !== undefined && { nonce: BigInt(nonce) }),
      ...permit,
    }),
  );
}
