import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { timesFrom } from "../../methods/exact-eip3009/payment-times.ts";
import { membersOf } from "../../util/json.ts";
import type { LineAnswer } from "../scene/facilitator-line.ts";
import { decodeHeader, encodeHeader, stranger } from "../scene/offers.ts";
import { otherThan } from "../scene/scene.ts";
import type { ShopBuyer, ShopCase } from "./run-shop-case.ts";
import { type Answer, type Deviation, readTerms } from "./shop-payment.ts";

const refuses = "Answers 402, and takes nothing.";
const servesOnce = "Serves once for what it has been paid once.";

/** The cases of `judge shop`. The first one tests that the shop sells at all. */
export const shopCases: readonly ShopCase[] = [
  {
    name: "plain",
    needsFacilitator: true,
    situation: "A buyer pays what is asked.",
    good: "Settles exactly that, answers 200, and names the transaction in PAYMENT-RESPONSE or X-PAYMENT-RESPONSE.",
    async run(buyer) {
      const answer = await buyer.send(await buyer.sign());
      expectStatus(buyer, answer, 200);
      const receipt = buyer.terms.x402Version === 1 ? "X-PAYMENT-RESPONSE" : "PAYMENT-RESPONSE";
      if (answer?.status === 200 && !answer.headers.has(receipt)) buyer.complain(`the 200 lacks ${receipt}`);
    },
  },
  {
    name: "no-payment",
    situation: "A buyer sends no payment.",
    good: "Answers 402 with its terms: in PAYMENT-REQUIRED in version 2, in the body in version 1.",
    async run(buyer) {
      const answer = await buyer.send();
      expectStatus(buyer, answer, 402);
      if (answer !== undefined && readTerms(answer, buyer.knownNetworks).length === 0)
        buyer.complain("the 402 has no terms");
    },
  },
  {
    name: "malformed-payment",
    situation: "The payment's header is not base64, not JSON, or an empty object.",
    good: "Answers 402 or 400, and not as though it had failed itself.",
    async run(buyer) {
      const name = buyer.terms.x402Version === 1 ? "X-PAYMENT" : "PAYMENT-SIGNATURE";
      for (const value of [
        "%%%",
        Buffer.from("{").toString("base64"),
        Buffer.from("{}").toString("base64"),
      ]) {
        expectStatus(buyer, await buyer.send({ [name]: value }), 402, 400);
      }
    },
  },
  invalid("wrong-signature", "The signature is another's.", () => ({ signature: `0x${"11".repeat(64)}1b` })),
  invalid("underpaid", "The payment is one unit too small.", ({ terms: { amount } }) =>
    differently(amount - 1n),
  ),
  invalid("nothing-paid", "The payment is of 0.", () => differently(0n)),
  {
    name: "overpaid",
    situation: "The payment is one unit too large.",
    good: `${refuses} (Scheme "exact" means exactly the price.)`,
    run: (buyer) => refused(buyer, differently(buyer.terms.amount + 1n)),
  },
  invalid("other-recipient", "The payment is to another recipient.", () => ({
    authorization: { to: stranger },
    accepted: { payTo: stranger },
  })),
  invalid("other-asset", "The payment is in another token.", ({ terms: { asset } }) => ({
    domain: { asset: { ...asset, address: stranger } },
    accepted: { asset: stranger },
  })),
  invalid("other-network", "The payment is on another network.", ({ terms }) => {
    const other = otherThan(terms.network.name);
    const network = terms.x402Version === 1 ? other.name : other.caip2;
    return { domain: { chainId: other.chainId, asset: other.usdc }, accepted: { network } };
  }),
  invalid("expired", "The authorization has expired.", () => ({
    authorization: timesFrom(0n, { until: 1 }),
  })),
  invalid("too-early", "The authorization is not valid yet.", () => ({
    authorization: timesFrom(0n, { from: 10_000_000_000, until: 20_000_000_000 }),
  })),
  {
    name: "other-resource",
    situation: "The payment names another resource, for the same price.",
    good: servesOnce,
    async run(buyer) {
      const resource = { url: "https://elsewhere.example/", description: "", mimeType: "" };
      await buyer.send(await buyer.sign({ resource }));
    },
  },
  {
    name: "other-version",
    situation: "The payment is in the other version of the protocol.",
    good: `${refuses} Or, where it speaks both, serves once.`,
    async run(buyer) {
      const { terms } = buyer;
      const x402Version = terms.x402Version === 1 ? 2 : 1;
      const { name, caip2 } = terms.network;
      const network = x402Version === 1 ? name : caip2;
      const written = { ...terms.written, network, amount: `${terms.amount}` };
      const answer = await buyer.send(await buyer.sign({}, { ...terms, x402Version, written }));
      expectStatus(buyer, answer, 200, 400, 402);
    },
  },
  {
    name: "same-twice",
    situation: "The same payment comes again, after its goods were delivered.",
    good: servesOnce,
    async run(buyer) {
      const payment = await buyer.sign();
      expectStatus(buyer, await buyer.send(payment), 200);
      await buyer.send(payment);
    },
  },
  {
    name: "twenty-at-once",
    situation: "The same payment comes twenty times at once.",
    good: servesOnce,
    async run(buyer) {
      const payment = await buyer.sign();
      const answers = await Promise.all(Array.from({ length: 20 }, () => buyer.send(payment)));
      for (const answer of answers) expectStatus(buyer, answer, 200, 402, 409, 429, 503);
    },
  },
  {
    name: "two-routes",
    situation: "The same payment comes for two things at once.",
    good: servesOnce,
    async run(buyer) {
      const { otherUrl } = buyer;
      if (otherUrl === undefined) return buyer.skip("the shop sells nothing at --other-path");
      const payment = await buyer.sign();
      await Promise.all([buyer.send(payment), buyer.send(payment, { url: otherUrl })]);
    },
  },
  {
    name: "bought-elsewhere",
    situation:
      "A payment that has bought one thing comes for another, with that one's URL and an identifier.",
    good: servesOnce,
    async run(buyer) {
      const { otherUrl } = buyer;
      if (otherUrl === undefined) return buyer.skip("the shop sells nothing at --other-path");
      const payment = await buyer.sign({ identifier: randomUUID() });
      expectStatus(buyer, await buyer.send(payment), 200);
      await buyer.send(payment, { url: otherUrl });
      await buyer.send(withResource(payment, otherUrl), { url: otherUrl });
    },
  },
  {
    name: "facilitator-down",
    situation: "The facilitator's connections are reset; once it is back the same payment comes again.",
    good: "Serves nothing while it cannot tell, and once when it can.",
    async run(buyer) {
      const payment = await buyer.sign();
      buyer.line.rule = async () => "reset";
      await buyer.send(payment);
      buyer.line.rule = undefined;
      expectStatus(buyer, await buyer.send(payment), 200);
    },
  },
  {
    name: "facilitator-slow",
    situation: "The facilitator takes 3 seconds for each answer.",
    good: "Waits, and serves.",
    async run(buyer) {
      buyer.line.rule = async (request) => {
        const answer = await request.forward();
        await sleep(3_000);
        return answer;
      };
      expectStatus(buyer, await buyer.send(await buyer.sign()), 200);
    },
  },
  {
    name: "facilitator-pending",
    situation: "The facilitator says settlement_pending, settles, and says so when it is asked again.",
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
    name: "facilitator-refuses",
    situation: "Verify says valid, and settle success: false with HTTP 200.",
    good: "Serves nothing.",
    async run(buyer) {
      const answer = { success: false, errorReason: "invalid_transaction_state", transaction: "" };
      answerSettlesWith(settleAnswer(200, answer, buyer), buyer);
      expectStatus(buyer, await buyer.send(await buyer.sign()), 402, 400, 502, 503);
    },
  },
  {
    name: "facilitator-lies",
    situation: "Settle says success: true, but with HTTP 500, and nothing was settled.",
    good: "Serves nothing: a 500 is no success.",
    async run(buyer) {
      const transaction = `0x${"00".repeat(32)}`;
      answerSettlesWith(settleAnswer(500, { success: true, transaction }, buyer), buyer);
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
    situation: "The buyer's connection breaks while the shop settles; then the same payment comes again.",
    good: "Serves the payment that it has settled and not delivered.",
    async run(buyer) {
      const payment = await buyer.sign();
      buyer.line.rule = async (request) => {
        if (request.operation === "settle") await sleep(600);
        return request.forward();
      };
      await buyer.send(payment, { breakOffAfterMs: 400 });
      await sleep(600);
      buyer.line.rule = undefined;
      await sendUntilServed(buyer, payment);
    },
  },
  {
    name: "after-expiry",
    situation: "The same payment comes again after it has expired.",
    good: servesOnce,
    async run(buyer) {
      const payment = await buyer.sign();
      expectStatus(buyer, await buyer.send(payment), 200);
      await buyer.advanceTime(buyer.terms.maxTimeoutSeconds + 60);
      await buyer.send(payment);
    },
  },
];

function invalid(name: string, situation: string, deviate: (buyer: ShopBuyer) => Deviation): ShopCase {
  return { name, situation, good: refuses, run: (buyer) => refused(buyer, deviate(buyer)) };
}

async function refused(buyer: ShopBuyer, deviation: Deviation): Promise<void> {
  expectStatus(buyer, await buyer.send(await buyer.sign(deviation)), 402, 400);
}

/** A deviating amount, both signed and in the payment's unsigned part. */
function differently(value: bigint): Deviation {
  return { authorization: { value }, accepted: { amount: `${value}`, maxAmountRequired: `${value}` } };
}

/** The same signed payment with another URL in its unsigned part; of version 1, which has none there, as it is. */
function withResource(payment: Record<string, string>, url: string): Record<string, string> {
  const { "PAYMENT-SIGNATURE": header } = payment;
  if (header === undefined) return payment;
  const written = membersOf(decodeHeader(header));
  const resource = { ...membersOf(written.resource), url };
  return { "PAYMENT-SIGNATURE": encodeHeader({ ...written, resource }) };
}

/** Sends the same payment again, which is safe: it cannot be settled twice. */
async function sendUntilServed(buyer: ShopBuyer, payment: Record<string, string>): Promise<void> {
  for (let attempt = 0; attempt < 3; attempt++) {
    const answer = await buyer.send(payment);
    if (answer?.status === 200) return;
    await sleep(300);
  }
}

/** Lets the facilitator process the first settle, and answers the shop with something else. */
function loseFirstSettlement({ line }: ShopBuyer, answerInstead: () => Promise<LineAnswer | "reset">): void {
  let isFirst = true;
  line.rule = async (request) => {
    if (request.operation !== "settle" || !isFirst) return request.forward();
    isFirst = false;
    await request.forwardAndLose();
    return answerInstead();
  };
}

/** Gives this answer to every settle, without settling. */
function answerSettlesWith(answer: LineAnswer, { line }: ShopBuyer): void {
  line.rule = async (request) => (request.operation === "settle" ? answer : request.forward());
}

function settleAnswer(status: number, answer: object, { terms, payer }: ShopBuyer): LineAnswer {
  const network = terms.x402Version === 1 ? terms.network.name : terms.network.caip2;
  const body = JSON.stringify({ ...answer, network, payer: payer.address });
  return { status, headers: { "content-type": "application/json" }, body };
}

function expectStatus(buyer: ShopBuyer, answer: Answer | undefined, ...statuses: readonly number[]): void {
  if (answer === undefined) buyer.complain("no answer came");
  else if (!statuses.includes(answer.status)) {
    buyer.complain(`answered ${answer.status}, where ${statuses.slice(0, 2).join(" or ")} is due`);
  }
}
