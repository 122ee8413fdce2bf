import type { Invalid } from "../protocol/catalogue.ts";
import type { ServedNetwork } from "../protocol/checks.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import type { AnswerExtra } from "../protocol/write-answers.ts";
import type { KnownActions } from "./actions.ts";
import type { Recover } from "./method.ts";
import type { WalletProof } from "./refuse-signature.ts";

/*
 * A scheme whose payments change the state of a contract, judged where there is no chain: by a model of that contract.
 */

/** Who asks, and where and when: the chain's time in unix seconds. */
export type ModelPlace = {
  network: ServedNetwork & { chainId: number };
  now: bigint;
  organizationId: string;
  /** Where the organization is paid. */
  recipient: Address | undefined;
};

/** Facts about a payment and its payer, in the token's smallest unit. */
export type ModelFacts = {
  price: bigint;
  used: boolean;
  balance: bigint;
  /** What Permit2 may take, where no approval comes first. */
  allowance: bigint | undefined;
  /** The refusal of an approval that came with it. */
  unapproved: Invalid | undefined;
  /** Asks the wallet that the payment deploys, if it does. */
  walletToCome: ((account: Address, digest: Hex, signature: Hex) => WalletProof) | undefined;
  /** The text by which the token would not move the payer's tokens; undefined where it would. */
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
  /** True if it is verified, and never settled: its window says nothing. */
  isVerifiedAlone: boolean;
  /** `extra` of a good verify. */
  extra: AnswerExtra["extra"];
  /** Moves the tokens for an organization; gives what the payer gets back, and what takes the move back. */
  apply(organizationId: string): { returned: bigint; undo(): void };
  /** Reads what the answer about a settled payment says; `invalid` where it did less than was asked for. */
  describe(transaction: string): AnswerExtra & { amount?: bigint | undefined; invalid?: Invalid | undefined };
};

export type PaymentModel = {
  /** Names what can be asked for again: see `Settling.identify`. */
  identify(place: ModelPlace, payment: SignedPayment, known: KnownActions): Promise<SignedPayment>;
  judge(place: ModelPlace, payment: SignedPayment, facts: ModelFacts): Promise<ModelledPayment>;
};

/** The answers that a model needs about signatures. */
export type ModelAccounts = {
  recover(...given: Parameters<Recover>): Address | undefined;
  askWallet(chainId: number, account: Address, digest: Hex, signature: Hex): WalletProof;
};
