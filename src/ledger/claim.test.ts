import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressOf, asset, paymentOf } from "../../test/support/ledger/test-ledger.ts";
import { decideClaims, type Reserved } from "./claim.ts";
import type { ClaimOutcome } from "./ledger.ts";
import { lowerCase } from "./rows.ts";

/** Something that counts against payer 1, unless said otherwise. */
const reservedOf = (value: bigint, minedIn: bigint | null = null, payer = 1): Reserved => ({
  asset: lowerCase(asset),
  payer: addressOf(payer),
  amount: value,
  minedIn,
});

describe("a payment of 10 out of a balance of 100, read at block 50", () => {
  test.each<{ case: string; reserved: Reserved[]; outcome: ClaimOutcome }>([
    { case: "nothing else", reserved: [], outcome: "claimed" },
    { case: "90 unfinished", reserved: [reservedOf(40n), reservedOf(50n)], outcome: "claimed" },
    { case: "91 unfinished", reserved: [reservedOf(40n), reservedOf(51n)], outcome: "over_balance" },
    { case: "91 of another payer", reserved: [reservedOf(91n, null, 2)], outcome: "claimed" },
    { case: "91 mined before", reserved: [reservedOf(91n, 49n)], outcome: "claimed" },
    { case: "91 mined in the block itself", reserved: [reservedOf(91n, 50n)], outcome: "claimed" },
    { case: "91 mined after", reserved: [reservedOf(91n, 51n)], outcome: "stale_balance" },
    { case: "90 mined after", reserved: [reservedOf(90n, 51n)], outcome: "claimed" },
    {
      case: "60 unfinished and 31 mined after",
      reserved: [reservedOf(60n), reservedOf(31n, 51n)],
      outcome: "stale_balance",
    },
    {
      case: "91 unfinished and 1 mined after",
      reserved: [reservedOf(91n), reservedOf(1n, 51n)],
      outcome: "over_balance",
    },
  ])("$case: $outcome", ({ reserved, outcome }) => {
    expect(decideClaims([paymentOf("a")], new Set(), reserved)).toEqual([outcome]);
  });
});

test("earlier requests of the call count, but only those that were let through", () => {
  const requests = [
    paymentOf("a", { amount: 60n }),
    paymentOf("b", { amount: 50n }),
    paymentOf("c", { amount: 40n }),
    paymentOf("d", { amount: 1n }),
  ];
  expect(decideClaims(requests, new Set(), [])).toEqual([
    "claimed",
    "over_balance",
    "claimed",
    "over_balance",
  ]);
});

test("each request is judged by the balance it brings", () => {
  const requests = [
    paymentOf("a", { amount: 60n, balance: 60n }),
    paymentOf("b", { amount: 50n, balance: 110n }),
    paymentOf("c", { amount: 1n, balance: 110n }),
  ];
  expect(decideClaims(requests, new Set(), [])).toEqual(["claimed", "claimed", "over_balance"]);
});

test("what is taken stays taken, and takes nothing from the balance", () => {
  const taken = paymentOf("a", { amount: 100n });
  expect(decideClaims([taken, paymentOf("b")], new Set([taken.id]), [])).toEqual(["taken", "claimed"]);
});

test("what is let through is the most the order allows, and never over any balance it was judged by", () => {
  const amount = fc.bigInt({ min: 0n, max: 40n });
  const block = fc.bigInt({ min: 48n, max: 53n });
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          nonce: fc.integer({ min: 0, max: 12 }),
          payer: fc.integer({ min: 1, max: 2 }),
          value: amount,
          balance: fc.bigInt({ min: 0n, max: 80n }),
          balanceBlock: block,
        }),
        { maxLength: 12 },
      ),
      fc.array(fc.tuple(amount, fc.option(block), fc.integer({ min: 1, max: 2 })), { maxLength: 6 }),
      (payments, others) => {
        const requests = payments.map(({ nonce, ...changes }) => paymentOf(nonce, changes));
        const outcomes = decideClaims(
          requests,
          new Set(),
          others.map(([value, minedIn, payer]) => reservedOf(value, minedIn, payer)),
        );
        for (const [index, request] of requests.entries()) {
          const before = requests.filter((_, at) => at < index && outcomes[at] === "claimed");
          const sum = (values: readonly bigint[]) => values.reduce((a, b) => a + b, 0n);
          const unfinished =
            request.amount +
            sum(before.filter(({ payer }) => payer === request.payer).map(({ amount }) => amount)) +
            sum(
              others.flatMap(([value, minedIn, payer]) =>
                minedIn === null && addressOf(payer) === request.payer ? [value] : [],
              ),
            );
          const justMined = sum(
            others.flatMap(([value, minedIn, payer]) =>
              minedIn !== null && minedIn > request.balanceBlock && addressOf(payer) === request.payer
                ? [value]
                : [],
            ),
          );
          const expected = before.some(({ id }) => id === request.id)
            ? "taken"
            : unfinished > request.balance
              ? "over_balance"
              : unfinished + justMined > request.balance
                ? "stale_balance"
                : "claimed";
          expect(outcomes[index]).toBe(expected);
        }
      },
    ),
  );
});
