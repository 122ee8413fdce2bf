import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  addressOf,
  createClock,
  createTestLedger,
  failed,
  hashOf,
  paymentOf,
  settled,
} from "../../test/support/ledger/test-ledger.ts";
import { readCursor, writeCursor } from "../protocol/settlement-query.ts";
import type { Database } from "./database/database.ts";
import type { Claims, SettlementFilter } from "./ledger.ts";
import { createList } from "./queries.ts";
import type { LedgerTables } from "./rows.ts";
import type { Settlement } from "./settlement.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let clock: ReturnType<typeof createClock>;
  let db: Database;
  let ledger: ReturnType<typeof createTestLedger>;
  /** Everything in the ledger, newest first. */
  let all: Settlement[];

  beforeEach(async () => {
    clock = createClock();
    db = await database.open();
    ledger = createTestLedger(db, clock.now);
    await ledger.introduce();
    // Some share their millisecond: order and pages must not depend on it.
    const claims = Array.from({ length: 12 }, (_, index) =>
      paymentOf(index, {
        payer: index % 3,
        organizationId: index % 2 === 0 ? "shop" : "bakery",
        amount: 1n,
      }),
    );
    for (const [index, claim] of claims.entries()) {
      await ledger.claimAll([claim]);
      if (index % 4 === 3) clock.advance(1_000);
    }
    await ledger.mine(0, claims.slice(0, 1).map(settled));
    await ledger.mine(
      1,
      claims.slice(1, 2).map((claim) => failed(claim)),
    );
    const found = await Promise.all(claims.map(({ id }) => ledger.find(id)));
    all = found
      .flatMap((settlement) => settlement ?? [])
      .sort((a, b) => b.claimedAt - a.claimedAt || (a.id < b.id ? 1 : -1));
    expect(all).toHaveLength(12);
  });

  /** Listings that go through so many settlements at a time. */
  const createListOfSpans = (spanLength: number) =>
    createList(db.$extendTables<LedgerTables>(), { spanLength });

  async function listAll(
    filter: SettlementFilter,
    limit: number,
    list: Claims["list"] = ledger.list,
  ): Promise<Settlement[]> {
    const listed: Settlement[] = [];
    for (let after: string | undefined; ; ) {
      const page = await list(filter, {
        limit,
        after: after === undefined ? undefined : (readCursor(after) ?? undefined),
      });
      expect(page.settlements.length).toBeLessThanOrEqual(limit);
      listed.push(...page.settlements);
      if (page.next === null) return listed;
      expect(page.settlements).toHaveLength(limit);
      after = writeCursor(page.next);
    }
  }

  test.each([1, 2, 3, 4, 5, 11, 12, 13, 100])("pages of %i hold each once, newest first", async (limit) => {
    expect(await listAll({}, limit)).toEqual(all);
  });

  test("filters by whatever is given, alone and together", async () => {
    const inSpans = createListOfSpans(2);
    const times = all.map(({ claimedAt }) => claimedAt);
    const filter = fc.record(
      {
        organizationId: fc.constantFrom("shop", "bakery", "nobody"),
        network: fc.constantFrom("base" as const, "polygon" as const),
        state: fc.constantFrom("submitted" as const, "settled" as const, "failed" as const),
        payer: fc.constantFrom(addressOf(0), addressOf(1), addressOf(99)),
        from: fc.constantFrom(...times, Math.max(...times) + 1),
        to: fc.constantFrom(...times, Math.max(...times) + 1),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(filter, fc.integer({ min: 1, max: 12 }), async (wanted, limit) => {
        const expected = all.filter(
          (one) =>
            (wanted.organizationId ?? one.organizationId) === one.organizationId &&
            (wanted.network ?? one.network) === one.network &&
            (wanted.state ?? one.state) === one.state &&
            (wanted.payer ?? one.payer) === one.payer &&
            one.claimedAt >= (wanted.from ?? 0) &&
            one.claimedAt < (wanted.to ?? Number.POSITIVE_INFINITY),
        );
        expect(await listAll(wanted, limit)).toEqual(expected);
        expect(await listAll(wanted, limit, inSpans)).toEqual(expected);
      }),
      { numRuns: 40 },
    );
  });

  /** Needs a look at every settlement of the organization. */
  const rare: SettlementFilter = { organizationId: "shop", network: "base", state: "recovered" };

  test("a search through many settlements lets payments go on meanwhile", async () => {
    const order: string[] = [];
    // Two at once, so that Postgres has a connection open for each: opening one takes longer than this listing.
    await Promise.all([ledger.find(paymentOf(0).id), ledger.find(paymentOf(1).id)]);
    const listing = createListOfSpans(1)({ state: "recovered" }, { limit: 5 });
    const payment = ledger.find(paymentOf(0).id).then(() => order.push("payment"));
    await Promise.all([listing.then(() => order.push("listing")), payment]);
    expect(order).toEqual(["payment", "listing"]);
  });

  test("listings take turns, and one too many is refused instead of kept waiting", async () => {
    const list = createListOfSpans(1);
    const asked = Array.from({ length: 60 }, () => list(rare, { limit: 5 }));
    const answers = await Promise.allSettled(asked);
    const refused = answers.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(8);
    expect(refused[0]).toMatchObject({ reason: { message: "Too many listings are waiting to be read" } });
    expect(await list({}, { limit: 100 })).toMatchObject({ settlements: all });
  });

  test("a payer is found in any casing", async () => {
    const payer = addressOf(0xabcdef);
    await ledger.claimAll([paymentOf("mixed", { payer: 0xabcdef })]);
    const shouted: `0x${string}` = `0x${payer.slice(2).toUpperCase()}`;
    expect(await listAll({ payer: shouted }, 10)).toHaveLength(1);
  });

  test("a page goes on where the last one ended, whatever was claimed meanwhile", async () => {
    const first = await ledger.list({}, { limit: 5 });
    clock.advance(1_000);
    await ledger.claimAll([paymentOf("new")]);
    const rest = await ledger.list({}, { limit: 100, after: first.next ?? undefined });
    expect([...first.settlements, ...rest.settlements]).toEqual(all);
  });

  describe("what gas an organization has cost", () => {
    const gwei = 1_000_000_000n;
    const spendingOf = async (organization: string) => {
      const { spent, unfinished } = await ledger.gasSpending(organization, "base");
      return { spent: spent.plain + spent.withCode, unfinished: unfinished.plain + unfinished.withCode };
    };

    test("is nothing in the beginning, with everything unfinished", async () => {
      expect(await spendingOf("nobody")).toEqual({ spent: 0n, unfinished: 0 });
      expect(await spendingOf("shop")).toEqual({ spent: 0n, unfinished: 5 });
      expect(await ledger.gasSpending("shop", "polygon")).toEqual({
        spent: { withCode: 0n, plain: 0n },
        unfinished: { withCode: 0, plain: 0 },
      });
    });

    test("is shared by the settlements of a transaction, failed ones included, and charged once", async () => {
      const claims = [
        paymentOf("a", { organizationId: "shop", payer: 9 }),
        paymentOf("b", { organizationId: "shop", payer: 9 }),
        paymentOf("c", { organizationId: "bakery", payer: 9 }),
      ];
      const { attempt } = await ledger.claimAll(claims);
      const txNonce = attempt?.txNonce ?? -1;
      const conclusions = claims.map((claim, index) => (index === 0 ? failed(claim) : settled(claim)));
      for (let time = 1; time <= 2; time++) await ledger.mine(txNonce, conclusions, 60n, 3_000n * gwei);
      // Rounded up, so that nothing is left unpaid.
      expect((await spendingOf("shop")).spent).toBe(2_002n * gwei);
      expect((await spendingOf("bakery")).spent).toBe(1_001n * gwei);
    });

    test("is shared by what each payment may have used: code at a payer's address may use most of it", async () => {
      // A plain signature: an account with a delegate signs like any other.
      const delegated = { organizationId: "bakery", payer: 9, payerCode: hashOf("code") };
      const claims = [paymentOf("a", { organizationId: "shop", payer: 9 }), paymentOf("b", delegated)];
      const { attempt } = await ledger.claimAll(claims);
      await ledger.mine(attempt?.txNonce ?? -1, claims.map(settled), 60n, 3_000n * gwei);
      const [plain, costly] = [(await spendingOf("shop")).spent, (await spendingOf("bakery")).spent];
      expect(costly).toBeGreaterThan(5n * plain);
      expect((await ledger.gasSpending("bakery", "base")).spent).toEqual({ withCode: costly, plain: 0n });
      expect(plain + costly).toBeGreaterThanOrEqual(3_000n * gwei);
    });

    test("tells payers with code and plain accounts of one organization apart", async () => {
      const claims = [
        paymentOf("a", { organizationId: "cafe", payer: 9, payerCode: hashOf("code") }),
        paymentOf("b", { organizationId: "cafe", payer: 9 }),
        paymentOf("c", { organizationId: "cafe", payer: 9 }),
      ];
      const { attempt } = await ledger.claimAll(claims);
      expect((await ledger.gasSpending("cafe", "base")).unfinished).toEqual({ withCode: 1, plain: 2 });
      const conclusions = claims.map((claim, index) => (index === 0 ? failed(claim) : settled(claim)));
      await ledger.mine(attempt?.txNonce ?? -1, conclusions, 60n, 3_000n * gwei);
      const { spent, unfinished } = await ledger.gasSpending("cafe", "base");
      expect(unfinished).toEqual({ withCode: 0, plain: 0 });
      expect(spent.withCode).toBeGreaterThan(2n * spent.plain);
      // Each share is rounded up.
      expect((spent.withCode + spent.plain) / gwei - 3_000n).toBeOneOf([0n, 1n, 2n, 3n]);
    });

    test("adds up over transactions, and begins anew with the day", async () => {
      const [a, b] = all.filter(
        ({ organizationId, state }) => organizationId === "shop" && state === "submitted",
      );
      if (a === undefined || b === undefined) throw new Error("too few");
      await ledger.mine(a.txNonce, [settled(a)], 60n, 10n ** 18n);
      await ledger.mine(b.txNonce, [settled(b)], 61n, 10n ** 18n);
      expect(await spendingOf("shop")).toEqual({ spent: 2n * (10n ** 18n + gwei), unfinished: 3 });
      clock.advance(24 * 60 * 60 * 1_000);
      expect(await spendingOf("shop")).toEqual({ spent: 0n, unfinished: 3 });
    });
  });
});

test("a cursor that is none is not read", () => {
  for (const text of [
    "",
    "0",
    "1-0x00",
    `1-${"A".repeat(64)}`,
    `-1-${"a".repeat(64)}`,
    `1-${"a".repeat(65)}`,
  ]) {
    expect(readCursor(text), text).toBeNull();
  }
});
