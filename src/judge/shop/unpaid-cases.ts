import type { ShopCase } from "./run-shop-case.ts";
import { isGood, type ShopBuyer } from "./shop-buyer.ts";
import { type Answer, readTerms } from "./shop-payment.ts";

const asksForPayment = "Answers 402, or that there is no such thing.";

/** Buyers that pay nothing, and look for a way around the price. */
export const unpaidCases: readonly ShopCase[] = [
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
      for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
        const isService = await goodsTest(buyer, method);
        await buyer.send({}, { method, isService });
      }
    },
  },
  {
    name: "free-with-spelling",
    situation: "A buyer without payment spells the path otherwise: /REPORT, /report/, //report, /%72eport.",
    good: asksForPayment,
    async run(buyer) {
      const isService = await goodsTest(buyer, "GET");
      for (const url of spellingsOf(buyer.url)) await buyer.send({}, { url, isService });
    },
  },
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
 * What tells goods from a page that a shop has for any address: a page says the same of a path that there is not, or is of
 * another type than the goods that were paid for.
 */
async function goodsTest(buyer: ShopBuyer, method: string): Promise<(answer: Answer) => boolean> {
  const url = new URL("/x402-judge/there-is-no-such-path", buyer.url).href;
  const page = await buyer.send({}, { url, method, isService: () => false });
  return (answer) =>
    isGood(answer) &&
    answer.body !== "" &&
    answer.body !== page?.body &&
    (buyer.goods === undefined || typeOf(answer) === typeOf(buyer.goods));
}

function typeOf({ headers }: Answer): string {
  return headers.get("content-type") ?? "";
}

/** Other spellings of a URL's path, which servers may take for the same one. */
function spellingsOf(resource: string): string[] {
  const { pathname } = new URL(resource);
  const withPath = (path: string) => {
    const url = new URL(resource);
    url.pathname = path;
    return url.href;
  };
  const last = pathname.split("/").findLast((part) => part !== "") ?? "";
  const encoded = `%${(last.codePointAt(0) ?? 0).toString(16)}${last.slice(1)}`;
  return [
    pathname.toUpperCase(),
    pathname.endsWith("/") ? pathname.slice(0, -1) : `${pathname}/`,
    `/${pathname}`,
    ...(/^[a-z]/i.test(last) ? [pathname.replace(last, encoded)] : []),
  ].map(withPath);
}
