import type { Invalid } from "../protocol/catalogue.ts";
import type { ServedNetwork } from "../protocol/checks.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import type { AnswerExtra } from "../protocol/write-answers.ts";
import type { KnownActions } from "./actions.ts";
import type { Recover } from "./method.ts";
import type { WalletProof } from "./refuse-signature.ts";

/*
 * Judges payments of a scheme that changes a contract's state when there is no chain: with a model of that contract.
 */

/** The caller, the network, and the chain's time in unix seconds. */
export type ModelPlace = {
  network: ServedNetwork & { chainId: number };
  now: bigint;
  organizationId: string;
  /** The address that receives the organization's payments. */
  recipient: Address | undefined;
};

/** Facts about a payment and its payer, in the token's smallest unit. */
export type ModelFacts = {
  price: bigint;
  used: boolean;
  balance: bigint;
  /** The payer's Permit2 allowance; undefined if an approval comes first. */
  allowance: bigint | undefined;
  /** The refusal of the approval that came with it. */
  unapproved: Invalid | undefined;
  /** Asks the wallet that the payment deploys, if it deploys one. */
  walletToCome: ((account: Address, digest: Hex, signature: Hex) => WalletProof) | undefined;
  /** The token's revert reason if the transfer would fail, otherwise undefined. */
  revert: string | undefined;
  /** The refusal by the state of the chain, for a payment that reverts. */
  state: Invalid | undefined;
};

/** A payment, as the model judges it. */
export type ModelledPayment = {
  /** The refusal for an organization that may not use it. */
  foreign: Invalid | undefined;
  refusal: Invalid | undefined;
  /** The refusal by a simulation of its transaction, which comes after the check of the window. */
  revert: Invalid | undefined;
  /** True if it is only ever verified, never settled: its window does not matter. */
  isVerifiedAlone: boolean;
  /** The `extra` of a successful verify. */
  extra: AnswerExtra["extra"];
  /** Moves the tokens for an organization. Returns the amount that the payer gets back, and a function that undoes it. */
  apply(organizationId: string): { returned: bigint; undo(): void };
  /** The response fields for a settled payment; `invalid` is set if it did less than requested. */
  describe(transaction: string): AnswerExtra & { amount?: bigint | undefined; invalid?: Invalid | undefined };
};

export type PaymentModel = {
  /** Identifies a repeatable request: see `Settling.identify`. */
  identify(place: ModelPlace, payment: SignedPayment, known: KnownActions): Promise<SignedPayment>;
  judge(place: ModelPlace, payment: SignedPayment, facts: ModelFacts): Promise<ModelledPayment>;
};

/** The signature checks that a model needs. */
export type ModelAccounts = {
  recover(...given: Parameters<Recover>): Address | undefined;
  askWallet(chainId: number, account: Address, digest: Hex, signature: Hex): WalletProof;
};
