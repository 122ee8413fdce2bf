import { setTimeout as sleep } from "node:timers/promises";
import type { LineAnswer } from "../scene/facilitator-line.ts";
import type { ShopCase } from "./run-shop-case.ts";
import type { ShopBuyer } from "./shop-buyer.ts";

export const servesOnce = "Serves once for what it has been paid once.";

/** Longer than a shop takes to ask its facilitator to settle. */
const longestWaitMs = 5_000;

/** Cases in which the facilitator fails or a connection breaks around a settlement. */
export const facilitatorCases: readonly ShopCase[] = [
  {
    name: "facilitator-down",
    situation: "The facilitator's connections are reset; once it is back the same payment comes again.",
    good: "Serves nothing while it cannot tell, and once when it can.",
    async run(buyer) {
      const payment = await buyer.sign();
      buyer.line.rule = async () => "reset";
      await buyer.send(payment);
      buyer.line.rule = undefined;
      buyer.expect(await buyer.send(payment), 200);
    },
  },
  {
    name: "facilitator-slow",
    order: "alone",
    situation: "The facilitator takes 3 seconds for each answer.",
    good: "Waits, and serves.",
    async run(buyer) {
      buyer.line.rule = async (request) => {
        const answer = await request.forward();
        await sleep(3_000);
        return answer;
      };
      buyer.expect(await buyer.send(await buyer.sign()), 200);
    },
  },
  {
    name: "facilitator-pending",
    situation: "The facilitator says settlement_pending, settles, and says so to the next request.",
    good: "Asks again by itself, or when the buyer does, and serves once.",
    async run(buyer) {
      const payment = await buyer.sign();
      loseFirstSettlement(buyer, async () => {
        const [transaction = ""] = await buyer.transactions();
        return settleAnswer(200, { success: false, errorReason: "settlement_pending", transaction }, buyer);
      });
      await sendUntilServed(buyer, payment);
    },
  },
  {
    name: "facilitator-stays-pending",
    situation: "The facilitator says settlement_pending to every request, and nothing is settled.",
    good: "Serves nothing: what is pending may still fail.",
    async run(buyer) {
      const transaction = `0x${"11".repeat(32)}`;
      answerSettlesWith(buyer, 200, { success: false, errorReason: "settlement_pending", transaction });
      const payment = await buyer.sign();
      await buyer.send(payment);
      await buyer.send(payment);
    },
  },
  {
    name: "facilitator-refuses",
    situation: "Verify says valid, and settle success: false with HTTP 200.",
    good: "Serves nothing.",
    async run(buyer) {
      const answer = { success: false, errorReason: "invalid_transaction_state", transaction: "" };
      answerSettlesWith(buyer, 200, answer);
      buyer.expect(await buyer.send(await buyer.sign()), 402, 400, 502, 503);
    },
  },
  {
    name: "facilitator-lies",
    situation: "Settle says success: true, but with HTTP 500, and nothing was settled.",
    good: "Serves nothing: a 500 is no success.",
    async run(buyer) {
      const transaction = `0x${"00".repeat(32)}`;
      answerSettlesWith(buyer, 500, { success: true, transaction });
      await buyer.send(await buyer.sign());
    },
  },
  {
    name: "facilitator-talks-nonsense",
    situation: "Verify and settle answer 200 with a body that is not JSON.",
    good: "Serves nothing.",
    async run(buyer) {
      buyer.line.rule = async (request) =>
        request.operation === "supported"
          ? request.forward()
          : { status: 200, headers: { "content-type": "text/html" }, body: "<html>" };
      await buyer.send(await buyer.sign());
    },
  },
  {
    name: "settle-answer-lost",
    situation: "Settled, but the facilitator's answer is lost; then the same payment comes again, twice.",
    good: servesOnce,
    async run(buyer) {
      const payment = await buyer.sign();
      loseFirstSettlement(buyer, async () => "reset");
      await sendUntilServed(buyer, payment);
      await buyer.send(payment);
    },
  },
  {
    name: "buyer-gone",
    order: "alone",
    situation: "The buyer's connection breaks while the shop settles; then the same payment comes again.",
    good: "Serves the payment that it has settled and not delivered.",
    async run(buyer) {
      const payment = await buyer.sign();
      const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      buyer.line.rule = async (request) => {
        if (request.operation !== "settle") return request.forward();
        asked.resolve();
        await sleep(200);
        return request.forward().finally(() => answered.resolve());
      };
      const inTime = sleep(longestWaitMs);
      await buyer.send(payment, { breakOff: Promise.race([asked.promise, inTime]) });
      await Promise.race([answered.promise, inTime]);
      // Gives the shop time to notice that the buyer is gone.
      await sleep(200);
      buyer.line.rule = undefined;
      await sendUntilServed(buyer, payment);
    },
  },
];

/** Sends the same payment again, which is safe because it cannot be settled twice. */
async function sendUntilServed(buyer: ShopBuyer, payment: Record<string, string>): Promise<void> {
  for (let attempt = 0; attempt < 3; attempt++) {
    const answer = await buyer.send(payment);
    if (answer?.status === 200) return;
    await sleep(300);
  }
}

/** Lets the facilitator process the first settle request, but answers the shop with something else. */
function loseFirstSettlement({ line }: ShopBuyer, answerInstead: () => Promise<LineAnswer | "reset">): void {
  let isFirst = true;
  line.rule = async (request) => {
    if (request.operation !== "settle" || !isFirst) return request.forward();
    isFirst = false;
    await request.forwardAndLose();
    return answerInstead();
  };
}

/** Answers every settle request with this, without settling. */
function answerSettlesWith(buyer: ShopBuyer, status: number, body: object): void {
  const answer = settleAnswer(status, body, buyer);
  buyer.line.rule = async (request) => (request.operation === "settle" ? answer : request.forward());
}

function settleAnswer(status: number, answer: object, { terms, payer }: ShopBuyer): LineAnswer {
  const network = terms.x402Version === 1 ? terms.network.name : terms.network.caip2;
  const body = JSON.stringify({ ...answer, network, payer: payer.address });
  return { status, headers: { "content-type": "application/json" }, body };
}
