import { randomUUID } from "node:crypto";
import { timesFrom } from "../../methods/payment-times.ts";
import { decodeHeader, encodeHeader } from "../../protocol/payment-headers.ts";
import { membersOf } from "../../util/json.ts";
import type { CaseRow } from "../frame/run-cases.ts";
import { stranger } from "../scene/offers.ts";
import { otherThan } from "../scene/scene.ts";
import { facilitatorCases, servesOnce } from "./facilitator-cases.ts";
import type { ShopCase } from "./run-shop-case.ts";
import { isGood, isLike, type ShopBuyer, typeOf, type UnpaidBuyer } from "./shop-buyer.ts";
import { type Answer, type Deviation, readTerms } from "./shop-payment.ts";

const asksForPayment = "Answers 402, or that there is no such thing.";

/** A case for a buyer without money. */
export type UnpaidCase = CaseRow & { run(buyer: UnpaidBuyer): Promise<void> };

/** Buyers that look for a way around the price. Used by the judge and by `x402-kit check`. */
export const probingCases: readonly UnpaidCase[] = [
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
        buyer.expect(await buyer.send({ [name]: value }), 402, 400);
      }
    },
  },
  {
    name: "free-with-query",
    situation: "A buyer without payment adds a query to the URL: ?x=1.",
    good: asksForPayment,
    async run(buyer) {
      const url = new URL(buyer.url);
      url.searchParams.set("x", "1");
      await buyer.send({}, { url: url.href });
    },
  },
  {
    name: "free-with-method",
    situation: "A buyer without payment asks with POST, PUT, PATCH or DELETE.",
    good: asksForPayment,
    async run(buyer) {
      for (const method of buyer.methods) {
        const isGoods = await goodsTest(buyer, method);
        // Another method may do something else there, which may be free.
        const isService = (answer: Answer) =>
          isGoods(answer) && (buyer.goods === undefined || isLike(answer, buyer.goods));
        await buyer.send({}, { method, isService });
      }
    },
  },
  {
    name: "free-with-head",
    situation: "A buyer without payment asks with HEAD.",
    good: `${asksForPayment} It does not answer as though GET were free.`,
    async run(buyer) {
      const page = await buyer.send({}, { url: noSuchPath(buyer), method: "HEAD", isService: () => false });
      const isPage = page !== undefined && isGood(page);
      const isService = (answer: Answer) => isGood(answer) && !isPage && hasTypeOfGoods(buyer, answer);
      await buyer.send({}, { method: "HEAD", isService });
    },
  },
  {
    name: "free-with-spelling",
    situation:
      "A buyer without payment spells what it asks for otherwise: /REPORT, /report/, //report, /./report, /%72eport, /report;x=1, http://any/report.",
    good: asksForPayment,
    async run(buyer) {
      const isService = await goodsTest(buyer, "GET");
      for (const target of spellingsOf(buyer.url)) await buyer.send({}, { target, isService });
    },
  },
];

const unpaidCases: readonly ShopCase[] = [
  {
    name: "no-payment",
    situation: "A buyer sends no payment.",
    good: "Answers 402 with its terms: in PAYMENT-REQUIRED in version 2, in the body in version 1.",
    async run(buyer) {
      const answer = await buyer.send();
      buyer.expect(answer, 402);
      if (answer !== undefined && readTerms(answer, buyer.knownNetworks).length === 0)
        buyer.complain("the 402 has no terms");
    },
  },
  ...probingCases,
  {
    name: "other-without-payment",
    situation: "A buyer sends no payment for the second thing that is sold.",
    good: `${asksForPayment} What is free is not to be named as --other-path.`,
    async run(buyer) {
      if (buyer.otherUrl === undefined) buyer.skip("it needs a second thing that is sold: --other-url");
      await buyer.send({}, { url: buyer.otherUrl, isService: await goodsTest(buyer, "GET") });
    },
  },
];

/**
 * Returns a test that tells goods from a page that a shop serves at any address. Such a page is the same at a path that
 * does not exist, or has another content type than the paid goods.
 */
async function goodsTest(buyer: UnpaidBuyer, method: string): Promise<(answer: Answer) => boolean> {
  const page = await buyer.send({}, { url: noSuchPath(buyer), method, isService: () => false });
  return (answer) =>
    isGood(answer) && answer.body !== "" && answer.body !== page?.body && hasTypeOfGoods(buyer, answer);
}

function noSuchPath({ url }: UnpaidBuyer): string {
  return new URL("/x402-judge/there-is-no-such-path", url).href;
}

function hasTypeOfGoods({ goods }: UnpaidBuyer, answer: Answer): boolean {
  return goods === undefined || typeOf(answer) === typeOf(goods);
}

/** Other spellings of a request target that servers may treat as the same. Most HTTP clients would normalize them. */
function spellingsOf(resource: string): string[] {
  const { pathname, search, origin } = new URL(resource);
  const last = pathname.split("/").findLast((part) => part !== "") ?? "";
  const encoded = `%${(last.codePointAt(0) ?? 0).toString(16)}${last.slice(1)}`;
  return [
    pathname.toUpperCase(),
    pathname.endsWith("/") ? pathname.slice(0, -1) : `${pathname}/`,
    `/${pathname}`,
    `/.${pathname}`,
    ...(/^[a-z]/i.test(last) ? [pathname.replace(last, encoded)] : []),
    `${pathname};x=1`,
    `http://any${pathname}`,
    `${origin}${pathname}`,
  ].map((target) => `${target}${search}`);
}

const refuses = "Answers 402, and takes nothing.";

/** The cases of `judge shop`. The first one tests that the shop sells at all. Each has its own payer. */
export const shopCases: readonly ShopCase[] = [
  {
    name: "plain",
    situation: "A buyer pays the price.",
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
  invalid("underpaid", "The payment is one unit too small.", ({ terms: { value } }) =>
    differently(value - 1n),
  ),
  invalid("nothing-paid", "The payment is of 0.", () => differently(0n)),
  {
    name: "overpaid",
    situation: "The payment is one unit too large.",
    good: `${refuses} (Scheme "exact" means exactly the price.)`,
    run: (buyer) => refused(buyer, differently(buyer.terms.value + 1n)),
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
      const written = { ...terms.written, network, amount: `${terms.value}` };
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
    order: "alone",
    situation: "The same payment comes again after it has expired.",
    good: servesOnce,
    async run(buyer) {
      const payment = await buyer.sign();
      buyer.expect(await buyer.send(payment), 200);
      await buyer.advanceTime(buyer.terms.validForSeconds + 60);
      await buyer.send(payment);
    },
  },
];

/** The URL of another resource that a payment fits. Without one, the case is not run. */
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

/** The same signed payment with another URL in its unsigned part; unchanged in version 1, which has no URL there. */
function withResource(payment: Record<string, string>, url: string): Record<string, string> {
  const { "PAYMENT-SIGNATURE": header } = payment;
  if (header === undefined) return payment;
  const written = membersOf(decodeHeader(header));
  const resource = { ...membersOf(written.resource), url };
  return { "PAYMENT-SIGNATURE": encodeHeader({ ...written, resource }) };
}
