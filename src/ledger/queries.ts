// Imported, not global, so that a test with fake timers does not stop a listing.
import { setTimeout as delay } from "node:timers/promises";
import { type Kysely, type SelectQueryBuilder, sql, type Transaction } from "kysely";
import type { Address } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { UndeterminedError } from "../util/errors.ts";
import { inSnapshot } from "./database/transactions.ts";
import type { Claims, Outcomes, SettlementFilter, SettlesOf } from "./ledger.ts";
import type { Recoveries } from "./recoveries.ts";
import { type LedgerTables, lowerCase, type SettlementsTable, toAttempt, toSettlement } from "./rows.ts";
import type { AttemptKind } from "./settlement.ts";

/** A position in a listing, which is ordered newest first, and by id within a millisecond. */
type Place = { claimedAt: number; id: SettlementsTable["id"] };

type Query<Selection> = SelectQueryBuilder<LedgerTables, "settlements", Selection>;

/** The maximum index entries per query; a few milliseconds, during which SQLite blocks this process. */
const usualSpanLength = 2_000;
/** The maximum number of listings that are read at the same time, and that wait in the queue. */
const mostAtOnce = 2;
const mostWaiting = 50;

/**
 * Implements {@link Claims.list}. A filter may match few of many settlements, so a listing is read in spans of bounded
 * length, with a pause after each that is as long as the read, to let payments through.
 */
export function createList(
  db: Kysely<LedgerTables>,
  { spanLength = usualSpanLength }: { spanLength?: number } = {},
): Claims["list"] {
  const inTurn = limitListings();

  /** Returns the last position of the span that starts after a position; null if it reaches to the end. */
  async function findEndOfSpan(filter: SettlementFilter, after: Place | undefined): Promise<Place | null> {
    const row = await inOrder(withIndex(db.selectFrom("settlements"), filter), filter, after)
      .select(["claimed_at as claimedAt", "id"])
      .offset(spanLength - 1)
      .limit(1)
      .executeTakeFirst();
    return row ?? null;
  }

  async function readSpan(
    filter: SettlementFilter,
    { after, end, limit }: { after: Place | undefined; end: Place | null; limit: number },
  ): Promise<SettlementsTable[]> {
    let query = inOrder(withRest(withIndex(db.selectFrom("settlements"), filter), filter), filter, after);
    if (end !== null) {
      query = query.where(({ eb, refTuple, tuple }) =>
        eb(refTuple("claimed_at", "id"), ">=", tuple(end.claimedAt, end.id)),
      );
    }
    return query.selectAll().limit(limit).execute();
  }

  /** Reads up to `limit` matches after a position. */
  async function readRows(
    filter: SettlementFilter,
    limit: number,
    after?: Place,
  ): Promise<SettlementsTable[]> {
    const rows: SettlementsTable[] = [];
    let place = after;
    for (;;) {
      const from = performance.now();
      // If every index entry matches, the limit alone bounds the query.
      const end = isIndexed(filter) ? null : await findEndOfSpan(filter, place);
      rows.push(...(await readSpan(filter, { after: place, end, limit: limit - rows.length })));
      if (end === null || rows.length === limit) return rows;
      place = end;
      await delay(performance.now() - from);
    }
  }

  /** Yields the organizations that a payer has paid. Each takes one step in the index, however many payments there are. */
  async function* organizationsPaidBy(payer: Address): AsyncGenerator<string> {
    let organizationId = "";
    for (;;) {
      const from = performance.now();
      const next = await db
        .selectFrom("settlements")
        .select("organization_id")
        .where("payer", "=", lowerCase(payer))
        .where("organization_id", ">", organizationId)
        .orderBy("organization_id")
        .limit(1)
        .executeTakeFirst();
      if (next === undefined) return;
      organizationId = next.organization_id;
      yield organizationId;
      await delay(performance.now() - from);
    }
  }

  /** Does the same for a payer across all organizations, by merging the newest rows of each. */
  async function readRowsOfPayer(
    filter: SettlementFilter & { payer: Address },
    limit: number,
    after?: Place,
  ): Promise<SettlementsTable[]> {
    let newest: SettlementsTable[] = [];
    for await (const organizationId of organizationsPaidBy(filter.payer)) {
      const own = await readRows({ ...filter, organizationId }, limit, after);
      newest = [...newest, ...own].sort(byPlace).slice(0, limit);
    }
    return newest;
  }

  return (filter, { limit, after }) =>
    inTurn(async () => {
      const { organizationId, payer } = filter;
      // One extra row, to know if there is a next page.
      const rows =
        organizationId === undefined && payer !== undefined
          ? await readRowsOfPayer({ ...filter, payer }, limit + 1, after)
          : await readRows(filter, limit + 1, after);
      const settlements = rows.slice(0, limit).map(toSettlement);
      const last = settlements.at(-1);
      const next =
        rows.length > limit && last !== undefined ? { claimedAt: last.claimedAt, id: last.id } : null;
      return { settlements, next };
    });
}

/*
 * The indexes of migrations 0003 and 0006: (organization, network), (payer, organization), and (organization, state) for
 * rows that are not settled, each in the order of listings. Also that order alone, for one organization and for all.
 */

/** Applies the part of a filter that an index covers. */
function withIndex<Selection>(query: Query<Selection>, filter: SettlementFilter): Query<Selection> {
  const { organizationId, network, state, payer } = filter;
  if (organizationId === undefined) return query;
  const own = query.where("organization_id", "=", organizationId);
  if (payer !== undefined) return own.where("payer", "=", lowerCase(payer));
  if (state !== undefined && state !== "settled") {
    // The second condition repeats the index's own as a literal, because a bound parameter would not match it.
    return own.where("state", "=", state).where("state", "<>", sql.lit("settled" as const));
  }
  return network === undefined ? own : own.where("network", "=", network);
}

/** Applies the rest of a filter, which is checked row by row. */
function withRest<Selection>(query: Query<Selection>, filter: SettlementFilter): Query<Selection> {
  const { network, state, payer } = filter;
  let rest = query;
  if (network !== undefined) rest = rest.where("network", "=", network);
  if (state !== undefined) rest = rest.where("state", "=", state);
  if (payer !== undefined) rest = rest.where("payer", "=", lowerCase(payer));
  return rest;
}

function byPlace(a: SettlementsTable, b: SettlementsTable): number {
  return b.claimed_at - a.claimed_at || (a.id < b.id ? 1 : -1);
}

/** Returns true if {@link withIndex} covers the whole filter, apart from the times. */
function isIndexed({ organizationId, network, state, payer }: SettlementFilter): boolean {
  const others = [network, state, payer].filter((one) => one !== undefined);
  return others.length === 0 || (organizationId !== undefined && others.length === 1 && state !== "settled");
}

function inOrder<Selection>(
  query: Query<Selection>,
  { from, to }: SettlementFilter,
  after: Place | undefined,
): Query<Selection> {
  let ordered = query.orderBy("claimed_at", "desc").orderBy("id", "desc");
  if (from !== undefined) ordered = ordered.where("claimed_at", ">=", from);
  if (to !== undefined) ordered = ordered.where("claimed_at", "<", to);
  if (after !== undefined) {
    ordered = ordered.where(({ eb, refTuple, tuple }) =>
      eb(refTuple("claimed_at", "id"), "<", tuple(after.claimedAt, after.id)),
    );
  }
  return ordered;
}

/** Runs a few listings at a time, and queues the others. */
function limitListings(): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < mostAtOnce) running++;
    else {
      if (waiting.length >= mostWaiting) {
        throw new UndeterminedError("Too many listings are waiting to be read", {
          hints: ["Ask again in a moment."],
        });
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}

/** Implements {@link Claims.openAttempts}. */
export function createOpenAttempts(db: Kysely<LedgerTables>): Claims["openAttempts"] {
  return (chainId, account) => readOpen(db, { chainId, account }, ["settle", "noop"], settlementsOfOperator);
}

/** Implements {@link Recoveries.openForwards}. */
export function createOpenForwards(db: Kysely<LedgerTables>): Recoveries["openForwards"] {
  return (chainId, account) =>
    readOpen(db, { chainId, account }, ["forward", "noop"], settlementsOfRecoverer);
}

function readOpen(
  db: Kysely<LedgerTables>,
  { chainId, account }: { chainId: number; account: Address },
  kinds: readonly AttemptKind[],
  findSettlements: typeof settlementsOfOperator,
): ReturnType<Claims["openAttempts"]> {
  return inSnapshot(db, async (snapshot) => {
    const open = await snapshot
      .selectFrom("attempts")
      .selectAll()
      .where("chain_id", "=", chainId)
      .where("operator", "=", lowerCase(account))
      .where("state", "=", "open")
      .where("kind", "in", kinds)
      .orderBy("tx_nonce")
      .orderBy("created_at")
      .execute();
    if (open.length === 0) return [];
    const txNonces = [...new Set(open.map(({ tx_nonce }) => tx_nonce))];
    const rows = await findSettlements(snapshot, { chainId, account, txNonces });
    const settlements = Map.groupBy(rows, ({ sent_with }) => sent_with);
    return open.map((row) => ({
      attempt: toAttempt(row),
      settlements: (settlements.get(row.tx_nonce) ?? []).map(toSettlement),
    }));
  });
}

type Transactions = { chainId: number; account: Address; txNonces: readonly number[] };

function settlementsOfOperator(
  snapshot: Transaction<LedgerTables>,
  { chainId, account, txNonces }: Transactions,
): Promise<(SettlementsTable & { sent_with: number | null })[]> {
  return snapshot
    .selectFrom("settlements")
    .selectAll()
    .select("tx_nonce as sent_with")
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(account))
    .where("tx_nonce", "in", txNonces)
    .execute();
}

function settlementsOfRecoverer(
  snapshot: Transaction<LedgerTables>,
  { chainId, account, txNonces }: Transactions,
): Promise<(SettlementsTable & { sent_with: number | null })[]> {
  return snapshot
    .selectFrom("settlements")
    .innerJoin("recoveries", "recoveries.id", "settlements.id")
    .selectAll("settlements")
    .select("recoveries.tx_nonce as sent_with")
    .where("recoveries.chain_id", "=", chainId)
    .where("recoveries.recoverer", "=", lowerCase(account))
    .where("recoveries.state", "=", "sent")
    .where("recoveries.tx_nonce", "in", txNonces)
    .execute();
}

/** The maximum count per state; a payer may have millions, and more would not change a decision. */
const mostOfState = 1_000;

/** Implements {@link Outcomes.recentSettles}. Each state is read from the newest end of an index. */
export function createRecentSettles(db: Kysely<LedgerTables>): Outcomes["recentSettles"] {
  return async (of, since) => {
    const count = (state: "submitted" | "settled" | "failed") =>
      db
        .selectFrom(selectNewest(db, of, state, since).as("newest"))
        .select(({ fn }) => [
          sql.lit(state).as("state"),
          fn.countAll<number | bigint | string>().as("settles"),
          fn.count<number | bigint | string>("payer_code").distinct().as("codes"),
          fn.max("concluded_at").as("last"),
        ]);
    const rows = await count("submitted").unionAll(count("settled")).unionAll(count("failed")).execute();
    const find = (state: string) => rows.find((row) => row.state === state);
    const reverted = find("failed");
    const counted = of.kind === "organization" ? reverted?.codes : reverted?.settles;
    return {
      underWay: Number(find("submitted")?.settles ?? 0),
      settled: Number(find("settled")?.settles ?? 0),
      reverted: Number(counted ?? 0),
      lastRevertedAt: reverted?.last == null ? null : Number(reverted.last),
    };
  };
}

/** Selects the newest settlements in a state; all of the pending ones. */
function selectNewest(
  db: Kysely<LedgerTables>,
  of: SettlesOf,
  state: "submitted" | "settled" | "failed",
  since: number,
) {
  const inState = db
    .selectFrom("settlements")
    .select(["payer_code", "concluded_at"])
    .where("state", "=", state)
    .limit(mostOfState);
  const lately =
    state === "submitted"
      ? inState
      : inState.where("concluded_at", ">", since).orderBy("concluded_at", "desc");
  switch (of.kind) {
    case "payer": {
      const ofAccount = inState
        .where("chain_id", "=", of.chainId)
        .where("asset", "=", lowerCase(of.asset))
        .where("payer", "=", lowerCase(of.payer));
      if (state === "submitted") return ofAccount;
      // Ordered by block, like their index.
      const newest = ofAccount.orderBy("block_number", "desc").as("of_account");
      return db
        .selectFrom(newest)
        .select(["of_account.payer_code", "of_account.concluded_at"])
        .where("of_account.concluded_at", ">", since);
    }
    case "organization":
      return ofOrganization(lately, of);
    case "code":
      // Searches the organization's newest with any code, so that a rare code needs no long search.
      return db
        .selectFrom(ofOrganization(lately, of).as("with_code"))
        .select(["with_code.payer_code", "with_code.concluded_at"])
        .where("with_code.payer_code", "=", lowerCase(of.payerCode));
  }
}

function ofOrganization<Selection>(
  query: Query<Selection>,
  { organizationId, network }: { organizationId: string; network: NetworkName },
): Query<Selection> {
  return query
    .where("organization_id", "=", organizationId)
    .where("network", "=", network)
    .where("payer_code", "is not", null);
}

/** How many of a payer's newest are searched for the code; the payer may have used other code or networks since. */
const newestOfPayer = 100;

/** Implements {@link Outcomes.hasPaidLast}. */
export function createHasPaidLast(db: Kysely<LedgerTables>): Outcomes["hasPaidLast"] {
  return async ({ chainId, asset, payer }, { organizationId, payerCode }) => {
    const newest = db
      .selectFrom("settlements")
      .select(["chain_id", "asset", "payer_code", "state", "claimed_at"])
      .where("payer", "=", lowerCase(payer))
      .where("organization_id", "=", organizationId)
      .orderBy("claimed_at", "desc")
      .orderBy("id", "desc")
      .limit(newestOfPayer);
    const last = await db
      .selectFrom(newest.as("newest"))
      .select("newest.state")
      .where("newest.chain_id", "=", chainId)
      .where("newest.asset", "=", lowerCase(asset))
      .where("newest.payer_code", "=", lowerCase(payerCode))
      .orderBy("newest.claimed_at", "desc")
      .limit(1)
      .executeTakeFirst();
    return last?.state === "settled";
  };
}
