import type { z } from "zod";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Finding } from "../protocol/mistakes.ts";
import type { Asset, Network } from "../protocol/networks.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";

/** Requirements or an offer, as they came. */
export type Terms = Readonly<Record<string, unknown>>;

/** The context that a signature is explained with. */
export type SignatureContext = {
  /** Its place, for findings. */
  at: string;
  network: Network;
  /** The token that is paid with; one that is not known is taken for another USDC. */
  asset: Asset;
  /** The seller's: the payer may have signed for those and sent something else. */
  requirements: PaymentRequest["requirements"];
  recover(digest: Hex, signature: Hex): Address | undefined;
};

/** The half of a payment method that explains payments and offers, however they came. The service does not load it. */
export type ExplainedMethod = {
  /** `Method.name` of the methods that it is for. */
  readonly names: readonly string[];
  /** The member of the payload that is signed. */
  readonly member: string;
  /** Names a payment by what was signed, well formed or not, in the payload that it came in. */
  nameOf(
    signed: Terms,
    payload: Terms,
  ): {
    payer: unknown;
    value: unknown;
    nonce: Hex | undefined;
    nonceSpace: Address | undefined;
  };
  /** Finds out what a signature was made for, by trying common mistakes; empty where it is the payer's. */
  explainSignature(payment: SignedPayment, context: SignatureContext): readonly Finding[];
  /** Finds what makes every payment for an offer fail, although each of its members can be read. */
  explainOffer(at: string, offer: Terms, context: { token: Asset; contract: Address }): readonly Finding[];
  /** Makes `paymentPayload.payload` of a payment for an offer, well formed and not signed. */
  example(offer: Terms): object;
};

/** The half of a payment method that serves people: it also names the method, in forms and options. */
export type MethodForPeople = ExplainedMethod & {
  /** How it moves tokens, for people: “EIP-3009”. */
  readonly label: string;
  /** The option of `harness.pay` with members that are to be signed as they stand there. */
  readonly option: string;
  /** `paymentPayload.payload` of a payment by a scheme. */
  payloadSchema(scheme: string): z.ZodObject;
};
