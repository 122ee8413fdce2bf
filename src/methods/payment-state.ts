import type { Invalid } from "../protocol/catalogue.ts";
import type { Address } from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";
import { refusals } from "../protocol/refusals.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";

/*
 * The meaning of a chain's state for a payment, defined once. Each judge of a payment supplies the facts that it can know, from
 * its own source: the service from views of the chain, the fixtures from their ledger, `why` from the newest block. Missing facts are skipped.
 */

/** Facts that a payer may see. Amounts are in the asset's smallest unit. */
export type PayerState = {
  /** However long ago, or cancelled: a token does not tell these two apart. */
  authorizationUsed: boolean;
  payerBalance: bigint;
  payerBlacklisted: boolean;
  /** All transfers of the token are stopped. */
  assetPaused: boolean;
  /** How much Permit2 may take of the payer's tokens; only where the payment goes through it. */
  payerAllowance?: bigint | undefined;
};

/** The states that keep a correctly signed payment from settling. */
export type StateFacts = Partial<PayerState> & {
  recipientBlacklisted?: boolean;
  contractBlacklisted?: boolean;
  /** The factory of a wallet that is deployed with its payment (ERC-6492), where it does not deploy it. */
  failingFactory?: Address | undefined;
  assetMissing?: boolean;
  assetKeepsFee?: boolean;
  permit2Missing?: boolean;
  proxyMissing?: boolean;
  /** The payer's next nonce at the token for an approval by EIP-2612. */
  nextApproval?: bigint;
};

/** A payment as its refusals name it. */
export type JudgedPayment = {
  payment: Pick<SignedPayment, "asset" | "payer"> & Partial<Pick<SignedPayment, "payload">>;
  /** The payment to settle. */
  needed: bigint;
  /** The known facts about its asset, by which amounts are shown. */
  token: Asset | undefined;
  network: string;
  recipient?: Address | undefined;
};

/** All that the state has against a payment, in the order in which it is said. */
export type StateRefusals = (
  facts: StateFacts,
  one: JudgedPayment,
) => readonly (Invalid | false | undefined)[];

/** Those of every payment method. */
export const usualStateRefusals: StateRefusals = (facts, { needed, token, recipient }) => {
  const { authorizationUsed, assetPaused, payerBlacklisted, payerBalance = needed } = facts;
  return [
    authorizationUsed && refusals.usedOnChain(),
    assetPaused && refusals.assetPaused(),
    payerBlacklisted && refusals.payerBlacklisted(),
    facts.recipientBlacklisted && recipient && refusals.recipientBlacklisted(recipient),
    facts.contractBlacklisted && refusals.contractBlacklisted(),
    payerBalance < needed && refusals.balanceTooSmall(payerBalance, needed, token),
  ];
};

/** Why a payment is refused: the first that its state has against it. */
export function refuseByState(
  { stateRefusals }: { stateRefusals: StateRefusals },
  facts: StateFacts,
  one: JudgedPayment,
): Invalid | undefined {
  return stateRefusals(facts, one).find((refusal) => refusal) || undefined;
}
