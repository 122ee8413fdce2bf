import type { Address } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { SignedAttempt } from "./settlement.ts";

/*
 * Gas money that a sponsor gives to payers so that they can approve Permit2. A row is a final decision: its payer gets
 * no second gift for that token, whatever happens to the transaction, and its txNonce belongs to this gift for good.
 * So its cost is charged to an organization when the row is stored, and never refunded.
 */

/** The receiver of a gift, and the token it is for. */
export type Receiver = { chainId: number; asset: Address; payer: Address };

/**
 * Gas money that was given: a signed transaction of the sponsor. `value` is in wei; `organizationId` is the
 * organization whose payment it was given for, null for gifts of versions that did not record it.
 */
export type Gift = Receiver &
  SignedAttempt & {
    sponsor: Address;
    txNonce: number;
    value: bigint;
    givenAt: number;
    organizationId: string | null;
  };

/** The charge to an organization's gas budget of the day, in wei. */
export type GiftCharge = { organizationId: string; network: NetworkName; cost: bigint };

/** A sponsor's gifts on a day, in wei: the total, and those for the payments of one organization. */
export type GivenOnDay = { total: bigint; own: bigint };

/** The reason for no gift: an earlier one, or a reached limit (see {@link findLimit}). */
export type NoGift = "given_before" | ReachedLimit;

/** A daily limit that a gift would exceed: the total one, or that of one organization. */
export type ReachedLimit = "day" | "organization";

/**
 * Returns the daily limit that a gift would exceed; undefined if it can be given. No organization may get more than it
 * leaves for the others, so that none can use up the day: the first one gets half at most.
 */
export function findLimit(
  value: bigint,
  { total, own }: GivenOnDay,
  daily: bigint,
): ReachedLimit | undefined {
  if (total + value > daily) return "day";
  return own + value > daily - total - value ? "organization" : undefined;
}

export type Gifts = {
  /** Returns the gift to a payer for a token; null if there was none. */
  find(receiver: Receiver): Promise<Gift | null>;
  /** Returns a sponsor's gifts on the UTC day of `time`. `own` is 0 without an organization. */
  givenOn(
    sponsor: { chainId: number; address: Address },
    time: number,
    organizationId?: string,
  ): Promise<GivenOnDay>;
  /**
   * Takes a txNonce, has the gift signed with it, stores both and charges the cost; or does nothing. Bytes that are
   * not stored never leave `sign`.
   *
   * @param charge the maximum cost of the gift: its value plus its gas
   * @param mined the number of the sponsor's mined transactions
   * @param dailyLimit the maximum total per day, in wei
   */
  give(
    gift: Receiver & { sponsor: Address; value: bigint },
    charge: GiftCharge,
    limits: { mined: number; dailyLimit: bigint },
    sign: (txNonce: number) => Promise<SignedAttempt>,
  ): Promise<Gift | NoGift>;
  /** Returns a sponsor's gifts that may not be mined yet, in the order of their txNonces. */
  open(sponsor: { chainId: number; address: Address }, mined: number): Promise<readonly Gift[]>;
  /**
   * Replaces a gift's transaction by one with higher fees and the same txNonce, receiver and value, and charges `more`
   * wei for it. Returns false and changes nothing if it has been replaced already.
   */
  replace(gift: Gift, by: SignedAttempt, charge: { network: NetworkName; more: bigint }): Promise<boolean>;
};
