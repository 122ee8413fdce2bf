import type { CaseRow } from "../frame/run-cases.ts";
import type { ChannelShopBuyer } from "./channel-shop-buyer.ts";

/** The actions of a buyer that keeps a channel. */
export type ChannelShopCase = CaseRow & { run(buyer: ChannelShopBuyer): Promise<void> };

const refuses = "Answers 402: nobody pays for what it serves by such a voucher.";

/** The cases of `judge shop` for scheme "batch-settlement". The first one tests that the shop sells at all. */
export const channelShopCases: readonly ChannelShopCase[] = [
  {
    name: "on-one-channel",
    situation: "A buyer deposits, and buys three times.",
    good: "Serves each time, says what it charges, no more than the price, and claims no more than it said.",
    async run(buyer) {
      for (let purchase = 1; purchase <= 3; purchase++) await buyer.buy();
      await buyer.waitForClaims();
    },
  },
  {
    name: "beyond-ceiling",
    situation:
      "A buyer that has bought sends the same voucher again, and then one that is a unit below what was charged and the price.",
    good: refuses,
    async run(buyer) {
      await buyer.buy();
      await buyer.sendBad(buyer.charged());
      await buyer.sendBad(buyer.charged() + buyer.price - 1n);
    },
  },
  {
    name: "beyond-deposit",
    situation:
      "A buyer deposits the price, buys, and sends a voucher for the next purchase without another deposit.",
    good: refuses,
    async run(buyer) {
      await buyer.buy({ most: buyer.price });
      await buyer.sendBad(buyer.charged() + buyer.price);
    },
  },
  {
    name: "voucher-of-stranger",
    situation: "A buyer that has bought sends a voucher for the next purchase that another key has signed.",
    good: refuses,
    async run(buyer) {
      await buyer.buy();
      await buyer.sendBad(buyer.charged() + buyer.price, buyer.stranger);
    },
  },
  {
    name: "withdrawal",
    situation: "A buyer that has bought announces on chain that it withdraws, and buys again.",
    good: "Claims what it has sold as long as withdrawDelay runs, as soon as it can; it may refuse to sell more.",
    async run(buyer) {
      await buyer.buy();
      await buyer.withdraw();
      await buyer.buy({ mayRefuse: true });
      await buyer.waitForClaims();
    },
  },
  {
    name: "restart",
    order: "alone",
    situation: "The shop is ended after a sale and started again; then the same buyer buys once more.",
    good: "Has its vouchers and charges in X402_STORAGE: claims what it sold before, and goes on with the channel.",
    async run(buyer) {
      // If the shop claimed before it stopped, there was nothing to lose, so this tries again.
      for (let attempt = 1; attempt <= 3; attempt++) {
        await buyer.buy();
        await buyer.restart();
        if ((await buyer.claimed()) < buyer.charged()) break;
      }
      await buyer.waitForClaims();
      await buyer.buy();
    },
  },
];
