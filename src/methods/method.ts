import type { MethodTerms, ServedNetwork } from "../protocol/checks.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";
import type { PayloadReader } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import type { PayerTerms, PaymentSigner } from "./payer-terms.ts";
import type { StateRefusals } from "./payment-state.ts";

/** A domain that a payer may have signed for (EIP-712). */
export type SignedDomain = { asset: Pick<Asset, "name" | "version" | "address">; chainId: number };

/** Recovers the signer of a digest; undefined when the signature is none that a token could accept. */
export type Recover = (digest: Hex, signature: Hex) => Address | undefined | Promise<Address | undefined>;

/** A member of what was signed, as text. An amount is in the asset's smallest unit, a time in unix seconds. */
export type SignedMember = {
  readonly label: string;
  readonly value: string;
  /** Determines how the member is compared and shown. */
  readonly kind: "recipient" | "amount" | "time" | "other";
};

/** The members of `extra` in requirements that belong to a payment method. */
export type MethodExtra = {
  assetTransferMethod?: string;
  facilitatorAddress?: Address;
  receiverAuthorizer?: Address;
  withdrawDelay?: number;
};

/** The part of a payment method's off-chain half that the service needs. */
export type TakenMethod<Scheme extends string = string, Transfer extends string = string> = PayloadReader &
  MethodTerms & {
    readonly scheme: Scheme;
    readonly transfer: Transfer;
    /** `SignedPayment.method` of its payments. */
    readonly name: string;
    /** True if wallets that are not deployed yet can pay so: their signature has the form of ERC-6492 then. */
    readonly deploysWallets?: boolean;
    /** True if its on-chain half checks its signatures: it has others than that of the payer over the payment, or none. */
    readonly checksSignatures?: boolean;
    /** What of a `payload` makes another payment: the payer's signature over the payment does not cover all of it. */
    boundPayload?(payload: string): string;
    /**
     * The `extra` of the method in `GET /supported`, besides the scheme, which sellers put into that of their requirements;
     * undefined if no asset of the network can be paid by this method.
     */
    extra(network: ServedNetwork): MethodExtra | undefined;
    /** Until when the approval that came with a payment (EIP-2612) can be used, in unix seconds; undefined without one. */
    approvalDeadline?(payment: SignedPayment): bigint | undefined;
    /** Makes what gives the digest that payments of an asset are signed over, on a chain (EIP-712). */
    digester(asset: Asset, chainId: number): (payment: SignedPayment) => Hex;
    /**
     * Guesses the domain that a wrong signature of an account without code was made for, and how to fix it. The service does
     * this for each payment that it refuses: at most 24 recoveries of some 0.06 ms, about as much as answering one costs. The
     * answer must be the same at any load, so the limit is a number, not a time.
     */
    describeWrongSignature(payment: SignedPayment, right: SignedDomain, recover: Recover): Promise<string>;
  };

/** The off-chain half of a payment method: what payers sign and send. Needs no chain, and runs in a browser. */
export type Method<Scheme extends string = string, Transfer extends string = string> = TakenMethod<
  Scheme,
  Transfer
> & {
  /** The contract that keeps the nonces of its payments, where that is not their token. */
  readonly nonceSpace?: Address;
  /** The contract that payers approve on a token before they can pay with it. */
  readonly spender?: Address;
  /** The chain states that refuse a payment of this method, in the order in which they are reported. */
  readonly stateRefusals: StateRefusals;
  /** The members of an offer's `extra` without which nobody can sign a payment for it. */
  readonly offerNeeds: readonly string[];
  /**
   * Signs a payment as the payer.
   *
   * @throws {ConfigurationError} when a term is missing, misspelt or of the wrong kind
   */
  sign(signer: PaymentSigner, terms: PayerTerms): Promise<SignedPayment>;
  /** `paymentPayload.payload` of a payment, as public clients write it. */
  write(payment: SignedPayment): object;
  /** The signed message, member by member, for a person. */
  describe(payment: SignedPayment): Promise<readonly SignedMember[]>;
};

/** The part of a payment method's off-chain half that payers need. */
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
  /** True if the payee must not be the facilitator contract, which would forward nothing. */
  readonly paysPlain?: boolean;
};

/**
 * The member for a payment's nonce in the JSON of settlements, journals and transactions. Programs read that name, so it keeps
 * the name from when EIP-3009 was the only method.
 */
export const nonceMember = "authorizationNonce";
