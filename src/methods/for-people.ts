import type { z } from "zod";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Finding } from "../protocol/mistakes.ts";
import type { Asset, Network } from "../protocol/networks.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";

/** Requirements or an offer, as received. */
export type Terms = Readonly<Record<string, unknown>>;

/** The context needed to explain a signature. */
export type SignatureContext = {
  /** The path of the signature, for findings. */
  at: string;
  network: Network;
  /** The token that is paid with; an unknown token is treated as another USDC. */
  asset: Asset;
  /** The seller's requirements: the payer may have signed for these but sent something else. */
  requirements: PaymentRequest["requirements"];
  recover(digest: Hex, signature: Hex): Address | undefined;
};

/** The part of a payment method that explains payments and offers, even malformed ones. The service does not load it. */
export type ExplainedMethod = {
  /** The `Method.name` of the methods it covers. */
  readonly names: readonly string[];
  /** The field of the payload that is signed. */
  readonly member: string;
  /** Reads what identifies a payment from the signed message, well formed or not, and the payload around it. */
  nameOf(
    signed: Terms,
    payload: Terms,
  ): {
    payer: unknown;
    value: unknown;
    nonce: Hex | undefined;
    nonceSpace: Address | undefined;
  };
  /** Finds out what a signature was made for by trying common mistakes; empty if the signature is right. */
  explainSignature(payment: SignedPayment, context: SignatureContext): readonly Finding[];
  /** Finds problems of a well-formed offer that make every payment for it fail. */
  explainOffer(at: string, offer: Terms, context: { token: Asset; contract: Address }): readonly Finding[];
  /** Builds an example of `paymentPayload.payload` for an offer: well formed, but not signed. */
  example(offer: Terms): object;
};

/** The part of a payment method for user interfaces: it also names the method in forms and options. */
export type MethodForPeople = ExplainedMethod & {
  /** How it moves tokens, for display: "EIP-3009". */
  readonly label: string;
  /** The option of `harness.pay` for fields that are signed exactly as given. */
  readonly option: string;
  /** The schema of `paymentPayload.payload` for a scheme. */
  payloadSchema(scheme: string): z.ZodObject;
};
