import { randomUUID } from "node:crypto";
import { timesFrom } from "../../methods/exact-eip3009/payment-times.ts";
import { decodeHeader, encodeHeader } from "../../protocol/payment-headers.ts";
import { membersOf } from "../../util/json.ts";
import { stranger } from "../scene/offers.ts";
import { otherThan } from "../scene/scene.ts";
import { facilitatorCases, servesOnce } from "./facilitator-cases.ts";
import type { ShopCase } from "./run-shop-case.ts";
import type { ShopBuyer } from "./shop-buyer.ts";
import type { Deviation } from "./shop-payment.ts";
import { unpaidCases } from "./unpaid-cases.ts";

const refuses = "Answers 402, and takes nothing.";

/** The cases of `judge shop`. The first one tests that the shop sells at all. Each has a payer of its own. */
export const shopCases: readonly ShopCase[] = [
  {
    name: "plain",
    situation: "A buyer pays what is asked.",
    good: "Settles exactly that, answers 200, and names the transaction in PAYMENT-RESPONSE or X-PAYMENT-RESPONSE.",
    async run(buyer) {
      const answer = await buyer.send(await buyer.sign());
      buyer.expect(answer, 200);
      const receipt = buyer.terms.x402Version === 1 ? "X-PAYMENT-RESPONSE" : "PAYMENT-RESPONSE";
      if (answer?.status === 200 && !answer.headers.has(receipt)) buyer.complain(`the 200 lacks ${receipt}`);
    },
  },
  ...unpaidCases,
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
      buyer.expect(await buyer.send(await buyer.sign({ resource })), 200, 402, 400);
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
      buyer.expect(answer, 200, 400, 402);
    },
  },
  {
    name: "same-twice",
    situation: "The same payment comes again, after its goods were delivered.",
    good: servesOnce,
    async run(buyer) {
      const payment = await buyer.sign();
      buyer.expect(await buyer.send(payment), 200);
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
      for (const answer of answers) buyer.expect(answer, 200, 402, 409, 429, 503);
    },
  },
  {
    name: "two-routes",
    situation: "The same payment comes for two things at once.",
    good: servesOnce,
    async run(buyer) {
      const otherUrl = requireOther(buyer);
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
      const otherUrl = requireOther(buyer);
      const payment = await buyer.sign({ identifier: randomUUID() });
      buyer.expect(await buyer.send(payment), 200);
      await buyer.send(payment, { url: otherUrl });
      await buyer.send(withResource(payment, otherUrl), { url: otherUrl });
    },
  },
  ...facilitatorCases,
  {
    name: "after-expiry",
    runsAlone: true,
    situation: "The same payment comes again after it has expired.",
    good: servesOnce,
    async run(buyer) {
      const payment = await buyer.sign();
      buyer.expect(await buyer.send(payment), 200);
      await buyer.advanceTime(buyer.terms.maxTimeoutSeconds + 60);
      await buyer.send(payment);
    },
  },
];

/** The URL of another thing that a payment fits. Without it the case is not run. */
function requireOther({ otherUrl, sellsOther, skip }: ShopBuyer): string {
  if (otherUrl === undefined) return skip("it needs a second thing that is sold: --other-url");
  if (!sellsOther) {
    skip(`the shop sells nothing for the same terms at ${new URL(otherUrl).pathname}: see --other-path`);
  }
  return otherUrl;
}

function invalid(name: string, situation: string, deviate: (buyer: ShopBuyer) => Deviation): ShopCase {
  return { name, situation, good: refuses, run: (buyer) => refused(buyer, deviate(buyer)) };
}

async function refused(buyer: ShopBuyer, deviation: Deviation): Promise<void> {
  buyer.expect(await buyer.send(await buyer.sign(deviation)), 402, 400);
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
