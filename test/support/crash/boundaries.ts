import type { Chain } from "../../../src/chain/chain.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";

/** The steps between the claim of a payment and the end of its response, in order. */
export const boundaries = [
  "before the claim",
  "signed, not stored",
  "claimed, not broadcast",
  "broadcast, not watched",
  "mined, not recorded",
  "recorded, not answered",
  "answered, not marked as delivered",
  "marked as delivered",
] as const;

/** The steps of a gift to a payer, which come before all of these. */
export const giftBoundaries = ["gift signed, not stored", "gift stored, not sent", "gift sent"] as const;

export type Boundary = (typeof boundaries)[number];
export type AnyBoundary = Boundary | (typeof giftBoundaries)[number];

/** Wraps a service's collaborators so that `reached` is called when a payment reaches this step. */
export function stopAt(boundary: AnyBoundary, reached: () => void) {
  const at = (passed: AnyBoundary) => {
    if (passed === boundary) reached();
  };
  let isGiven = false;
  return {
    ledger: (ledger: Ledger): Ledger => ({
      ...ledger,
      claims: {
        ...ledger.claims,
        async claim(operator, requests, sign) {
          at("before the claim");
          const outcome = await ledger.claims.claim(operator, requests, async (txNonce, claimable) => {
            const signed = await sign(txNonce, claimable);
            at("signed, not stored");
            return signed;
          });
          at("claimed, not broadcast");
          return outcome;
        },
        async claimNothing(claim, checkedAt, charge) {
          at("before the claim");
          const outcome = await ledger.claims.claimNothing(claim, checkedAt, charge);
          at("recorded, not answered");
          return outcome;
        },
      },
      outcomes: {
        ...ledger.outcomes,
        async conclude(mined, conclusions) {
          at("mined, not recorded");
          await ledger.outcomes.conclude(mined, conclusions);
          at("recorded, not answered");
        },
      },
      gifts: {
        ...ledger.gifts,
        async give(gift, charge, limits, sign) {
          const given = await ledger.gifts.give(gift, charge, limits, async (txNonce) => {
            const signed = await sign(txNonce);
            at("gift signed, not stored");
            return signed;
          });
          at("gift stored, not sent");
          isGiven = true;
          return given;
        },
      },
      leases: {
        ...ledger.leases,
        async markDelivered(id, holder, kept) {
          at("answered, not marked as delivered");
          await ledger.leases.markDelivered(id, holder, kept);
          at("marked as delivered");
        },
      },
    }),
    chain: (chain: Chain): Chain => ({
      ...chain,
      async broadcast(raw) {
        await chain.broadcast(raw);
        if (isGiven) at("gift sent");
        at("broadcast, not watched");
      },
    }),
  };
}

/**
 * Wraps a service's collaborators so that nodes refuse transactions above a size; `reached` is called when the first
 * payment of one is stored to be sent alone.
 */
export function refuseLarge(mostBytes: number, reached: () => void) {
  return {
    ledger: (ledger: Ledger): Ledger => ({
      ...ledger,
      claims: {
        ...ledger.claims,
        async redrive(from, ids, sign) {
          const batch = await ledger.claims.redrive(from, ids, sign);
          if (batch !== null) reached();
          return batch;
        },
      },
    }),
    chain: (chain: Chain): Chain => ({
      ...chain,
      broadcast: (raws, options) =>
        chain.broadcast(
          raws.filter((raw) => raw.length / 2 <= mostBytes),
          options,
        ),
    }),
  };
}
