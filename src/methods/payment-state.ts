import type { Invalid } from "../protocol/catalogue.ts";
import type { Address } from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";
import { refusals } from "../protocol/refusals.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";

/*
 * The meaning of a chain's state for a payment, defined once. Each caller supplies the facts that it knows: the service from
 * chain views, the fixtures from their ledger, `why` from the newest block. Missing facts are skipped.
 */

/** Facts that a payer may see. Amounts are in the asset's smallest unit. */
export type PayerState = {
  /** Used or canceled, however long ago: a token does not distinguish the two. */
  authorizationUsed: boolean;
  payerBalance: bigint;
  payerBlacklisted: boolean;
  /** True if all transfers of the token are stopped. */
  assetPaused: boolean;
  /** The payer's Permit2 allowance; only for payments through Permit2. */
  payerAllowance?: bigint | undefined;
};

/** The facts that can keep a correctly signed payment from settling. */
export type StateFacts = Partial<PayerState> & {
  recipientBlacklisted?: boolean;
  contractBlacklisted?: boolean;
  /** The factory that was to deploy the payer's wallet (ERC-6492), if it fails to. */
  failingFactory?: Address | undefined;
  assetMissing?: boolean;
  assetKeepsFee?: boolean;
  permit2Missing?: boolean;
  proxyMissing?: boolean;
  /** The payer's next EIP-2612 nonce at the token. */
  nextApproval?: bigint;
};

/** The facts about a payment that its refusals mention. */
export type JudgedPayment = {
  payment: Pick<SignedPayment, "asset" | "payer"> & Partial<Pick<SignedPayment, "payload">>;
  /** The amount to settle. */
  needed: bigint;
  /** The known facts about the asset, which amounts are formatted with. */
  token: Asset | undefined;
  network: string;
  recipient?: Address | undefined;
};

/** All refusals that follow from the state, in the order in which they are reported. */
export type StateRefusals = (
  facts: StateFacts,
  one: JudgedPayment,
) => readonly (Invalid | false | undefined)[];

/** The state refusals common to all payment methods. */
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

/** The first refusal that follows from the state, if any. */
export function refuseByState(
  { stateRefusals }: { stateRefusals: StateRefusals },
  facts: StateFacts,
  one: JudgedPayment,
): Invalid | undefined {
  return stateRefusals(facts, one).find((refusal) => refusal) || undefined;
}
