import type { Address } from "../protocol/hex.ts";
import type { SignedAttempt } from "./settlement.ts";

/*
 * Gas money that a sponsor has given to payers, so that they can approve Permit2. A row stands for a decision that is never taken
 * back: its payer gets no second one for that token, whatever became of the transaction, whose txNonce is this gift's for good.
 */

/** Who is given something, and for which token. */
export type Receiver = { chainId: number; asset: Address; payer: Address };

/** Gas money that was given: a transaction of the sponsor, signed. `value` is in wei. */
export type Gift = Receiver &
  SignedAttempt & { sponsor: Address; txNonce: number; value: bigint; givenAt: number };

/** What keeps a gift from being made. */
export type NoGift = "given_before" | "limit_reached";

export type Gifts = {
  /** What was given to a payer for a token; null where nothing was. */
  find(receiver: Receiver): Promise<Gift | null>;
  /** What a sponsor has given on the day (UTC) of a moment, in wei. */
  givenOn(sponsor: { chainId: number; address: Address }, time: number): Promise<bigint>;
  /**
   * Takes a txNonce, has the gift signed with it and keeps both, or nothing. Bytes that are not kept never leave `sign`.
   *
   * @param mined how many of the sponsor's transactions are mined
   * @param dailyLimit the most that is given on a day, in wei
   */
  give(
    gift: Receiver & { sponsor: Address; value: bigint },
    limits: { mined: number; dailyLimit: bigint },
    sign: (txNonce: number) => Promise<SignedAttempt>,
  ): Promise<Gift | NoGift>;
  /** Those of a sponsor that may not be mined, in the order of their txNonces. */
  open(sponsor: { chainId: number; address: Address }, mined: number): Promise<readonly Gift[]>;
  /** Keeps a transaction that pays more in the place of a gift's, with the same txNonce, receiver and value. */
  replace(gift: Gift, by: SignedAttempt): Promise<void>;
};
