import type { Address } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { SignedAttempt } from "./settlement.ts";

/*
 * Gas money that a sponsor has given to payers, so that they can approve Permit2. A row stands for a decision that is never taken
 * back: its payer gets no second one for that token, whatever became of the transaction, whose txNonce is this gift's for good.
 * So what it costs is charged to an organization when it is kept, and never given back.
 */

/** Who is given something, and for which token. */
export type Receiver = { chainId: number; asset: Address; payer: Address };

/**
 * Gas money that was given: a transaction of the sponsor, signed. `value` is in wei; `organizationId` says for whose payment it
 * was given: null for one of a version that did not keep it.
 */
export type Gift = Receiver &
  SignedAttempt & {
    sponsor: Address;
    txNonce: number;
    value: bigint;
    givenAt: number;
    organizationId: string | null;
  };

/** The charge on an organization's gas budget of the day, in wei. */
export type GiftCharge = { organizationId: string; network: NetworkName; cost: bigint };

/** The gifts of a sponsor on a day, in wei: in all, and for the payments of one organization. */
export type GivenOnDay = { total: bigint; own: bigint };

/** The limit that prevents a gift: see {@link findLimit}. */
export type NoGift = "given_before" | ReachedLimit;

/** A day's limit that a gift would pass: that of all, or of one organization. */
export type ReachedLimit = "day" | "organization";

/**
 * Which limit of a day a gift would pass; undefined where it may be given. No organization is given more than it leaves for the
 * others, so that none can use up the day: the first gets half of it at most.
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
  /** The gift to a payer for a token; null if there was none. */
  find(receiver: Receiver): Promise<Gift | null>;
  /** The gifts of a sponsor on the day (UTC) of a moment. `own` is 0 without an organization. */
  givenOn(
    sponsor: { chainId: number; address: Address },
    time: number,
    organizationId?: string,
  ): Promise<GivenOnDay>;
  /**
   * Takes a txNonce, has the gift signed with it, keeps both and charges what it costs, or does nothing. Bytes that are not kept
   * never leave `sign`.
   *
   * @param charge what the gift costs at most: its value, and its gas
   * @param mined how many of the sponsor's transactions are mined
   * @param dailyLimit the most that is given on a day, in wei
   */
  give(
    gift: Receiver & { sponsor: Address; value: bigint },
    charge: GiftCharge,
    limits: { mined: number; dailyLimit: bigint },
    sign: (txNonce: number) => Promise<SignedAttempt>,
  ): Promise<Gift | NoGift>;
  /** Those of a sponsor that may not be mined, in the order of their txNonces. */
  open(sponsor: { chainId: number; address: Address }, mined: number): Promise<readonly Gift[]>;
  /**
   * Keeps a transaction that pays more in the place of a gift's, with the same txNonce, receiver and value, and charges `more`
   * wei for it. False, and nothing is changed, where another one has taken its place already.
   */
  replace(gift: Gift, by: SignedAttempt, charge: { network: NetworkName; more: bigint }): Promise<boolean>;
};
