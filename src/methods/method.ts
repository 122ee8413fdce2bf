import type { MethodTerms, ServedNetwork } from "../protocol/checks.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";
import type { PayloadReader } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import type { PayerTerms, PaymentSigner } from "./payer-terms.ts";
import type { StateRefusals } from "./payment-state.ts";

/** The EIP-712 domain of an asset on a chain. */
export type SignedDomain = { asset: Pick<Asset, "name" | "version" | "address">; chainId: number };

/** Recovers the signer of a digest; undefined if no token could accept the signature. */
export type Recover = (digest: Hex, signature: Hex) => Address | undefined | Promise<Address | undefined>;

/** A field of the signed message, as text. An amount is in the asset's smallest unit, a time in unix seconds. */
export type SignedMember = {
  readonly label: string;
  readonly value: string;
  /** Determines how the field is compared and shown. */
  readonly kind: "recipient" | "amount" | "time" | "other";
};

/** The fields of a payment method in the `extra` of requirements. */
export type MethodExtra = {
  assetTransferMethod?: string;
  facilitatorAddress?: Address;
  receiverAuthorizer?: Address;
  withdrawDelay?: number;
};

/** The off-chain part of a payment method that the service needs. */
export type TakenMethod<Scheme extends string = string, Transfer extends string = string> = PayloadReader &
  MethodTerms & {
    readonly scheme: Scheme;
    readonly transfer: Transfer;
    /** The `SignedPayment.method` of its payments. */
    readonly name: string;
    /** True if wallets that are not deployed yet can pay with it, using ERC-6492 signatures. */
    readonly deploysWallets?: boolean;
    /** True if its on-chain part checks signatures: it has none, or others besides the payer's over the payment. */
    readonly checksSignatures?: boolean;
    /** The part of `payload` that identifies the payment although the payer's signature does not cover it. */
    boundPayload?(payload: string): string;
    /**
     * The `extra` that `GET /supported` lists for the method and that sellers copy into their requirements; undefined if
     * the method can pay no asset of the network.
     */
    extra(network: ServedNetwork): MethodExtra | undefined;
    /** The deadline of the approval that came with a payment (EIP-2612), in unix seconds; undefined without one. */
    approvalDeadline?(payment: SignedPayment): bigint | undefined;
    /** Returns a function that computes the EIP-712 digest of payments in an asset on a chain. */
    digester(asset: Asset, chainId: number): (payment: SignedPayment) => Hex;
    /**
     * Guesses the domain that a wrong signature (by an account without code) was made for, and how to fix it. The service
     * does this for each payment that it refuses: at most 24 recoveries of about 0.06 ms each, which is about the cost of
     * answering the request. The limit is a count, not a time, so that the answer is the same under any load.
     */
    describeWrongSignature(payment: SignedPayment, right: SignedDomain, recover: Recover): Promise<string>;
  };

/** The off-chain part of a payment method: what payers sign and send. Needs no chain, and runs in a browser. */
export type Method<Scheme extends string = string, Transfer extends string = string> = TakenMethod<
  Scheme,
  Transfer
> & {
  /** The contract that keeps the nonces of its payments, if that is not the token. */
  readonly nonceSpace?: Address;
  /** The contract that payers approve on a token before they can pay with it. */
  readonly spender?: Address;
  /** The chain states that refuse a payment of this method, in the order in which they are reported. */
  readonly stateRefusals: StateRefusals;
  /** The fields that an offer's `extra` must have for a payment to be signed. */
  readonly offerNeeds: readonly string[];
  /**
   * Signs a payment as the payer.
   *
   * @throws {ConfigurationError} if a term is missing, misspelled or of the wrong type
   */
  sign(signer: PaymentSigner, terms: PayerTerms): Promise<SignedPayment>;
  /** Writes `paymentPayload.payload` for a payment, as public clients do. */
  write(payment: SignedPayment): object;
  /** The signed message field by field, for display. */
  describe(payment: SignedPayment): Promise<readonly SignedMember[]>;
};

/** The off-chain part of a payment method that payers need. */
export type PayableMethod<Scheme extends string = string, Transfer extends string = string> = Pick<
  Method<Scheme, Transfer>,
  | "name"
  | "scheme"
  | "transfer"
  | "versions"
  | "takesLess"
  | "spender"
  | "extra"
  | "offerNeeds"
  | "sign"
  | "write"
> & {
  /** True if the payee must not be the facilitator contract, which would not forward the money. */
  readonly paysPlain?: boolean;
};

/**
 * The field for a payment's nonce in the JSON of settlements, journals and transactions. Named when EIP-3009 was the only
 * method, and kept because programs read it.
 */
export const nonceMember = "authorizationNonce";
