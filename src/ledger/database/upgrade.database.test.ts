import { Migrator } from "kysely/migration";
import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../../test/support/databases.ts";
import {
  addressOf,
  asset,
  chainId,
  createTestLedger,
  hashOf,
  operator,
  paymentOf,
  settled,
} from "../../../test/support/ledger/test-ledger.ts";
import { createOrganizations } from "../../service/organizations/create-organizations.ts";
import { createKeyHmac } from "../../service/organizations/key-issuing.ts";
import type { SettlementFilter } from "../ledger.ts";
import type { Database } from "./database.ts";
import { initial } from "./migrations/initial-migration.ts";
import { migrations, operations } from "./migrations/later-migrations.ts";
import { migrate, pendingMigrations } from "./open-database.ts";

/*
 * A database as the version before left it, with one settlement in each state and everything that was going on. The
 * rows are written out: today's code must not have a say in what yesterday's wrote.
 */

type Row = Record<string, string | number | null>;

const time = 1_800_000_000_000;
const now = () => time;
const pepper = "a pepper for tests";
const key = `x4k_old_${"0123456789abcdef".repeat(4)}`;
const states = ["submitted", "settled", "failed", "recovered"] as const;

/** One of them is a number that databases do not reckon with. */
const validBefore = {
  ...{ submitted: 1_900_000_000n, settled: 2n ** 256n - 1n },
  ...{ failed: 1_900_000_000n, recovered: 1_900_000_000n },
};

const settlements: Row[] = states.map((state, txNonce) => {
  const payment = paymentOf(state, { amount: 30n });
  const concluded = state !== "submitted";
  return {
    id: payment.id,
    organization_id: "shop",
    network: "base",
    chain_id: chainId,
    asset: asset.toLowerCase(),
    payer: payment.payer,
    authorization_nonce: payment.nonce,
    digest: payment.digest,
    value: "30",
    valid_after: "0",
    valid_before: `${validBefore[state]}`,
    signature: payment.signature,
    recipient: payment.recipient,
    state,
    operator: operator.toLowerCase(),
    tx_nonce: txNonce,
    transaction_hash: hashOf(`transaction ${txNonce}`),
    block_number: concluded ? 60 + txNonce : null,
    block_hash: concluded ? hashOf(`block ${60 + txNonce}`) : null,
    failure: state === "failed" ? "the transaction was reverted" : null,
    claimed_block: 50,
    used_by_block: null,
    next_look_at: state === "failed" ? time : null,
    claimed_at: time - 10_000 + txNonce,
    concluded_at: concluded ? time - 5_000 : null,
    delivered_at: state === "settled" ? time - 4_000 : null,
  };
});

const attempts: Row[] = settlements.map(({ transaction_hash, tx_nonce, state, claimed_at }) => ({
  hash: transaction_hash ?? null,
  chain_id: chainId,
  operator: operator.toLowerCase(),
  tx_nonce: tx_nonce ?? null,
  kind: "settle",
  raw: "0x02ab",
  max_fee_per_gas: "1180591620717411303424",
  max_priority_fee_per_gas: "1000000",
  state: state === "submitted" ? "open" : "mined",
  created_at: claimed_at ?? null,
}));

const before: Record<string, Row[]> = {
  organizations: [{ id: "shop", name: "Shop", created_at: time - 100_000 }],
  recipients: [{ organization_id: "shop", network: "base", recipient: addressOf(0xbeef) }],
  api_keys: [
    {
      id: "old",
      organization_id: "shop",
      hmac: createKeyHmac(pepper)(key).toString("hex"),
      scopes: "verify settle",
      created_at: time - 100_000,
      expires_at: null,
      revoked_at: null,
    },
  ],
  operator_nonces: [{ chain_id: chainId, operator: operator.toLowerCase(), next_tx_nonce: 4 }],
  settlements,
  attempts,
  recoveries: [
    {
      id: paymentOf("recovered").id,
      chain_id: chainId,
      proof_hash: hashOf("direct submission"),
      proof_log_index: 3,
      proof_block: 61,
      state: "forwarded",
      recoverer: addressOf(0x4ec0),
      tx_nonce: 0,
      problem: null,
      queued_at: time - 6_000,
    },
  ],
  leases: [
    {
      id: paymentOf("submitted").id,
      holder: "request",
      instance_id: "old instance",
      expires_at: time + 30_000,
    },
  ],
  idempotency: [
    {
      organization_id: "shop",
      idempotency_key: "key",
      body_hash: "body",
      answer: '{"success":true}',
      instance_id: "old instance",
      lease_expires_at: time,
      expires_at: time + 1_000,
    },
  ],
};

const namesOf = (some: readonly { name: string }[]) => some.map(({ name }) => name);

/** Migrates by Kysely itself, as the first versions did, and writes the rows. */
async function fill(db: Database, applied: typeof migrations): Promise<void> {
  const provider = {
    getMigrations: async () => Object.fromEntries(applied.map((migration) => [migration.name, migration])),
  };
  expect((await new Migrator({ db, provider }).migrateToLatest()).error).toBeUndefined();
  for (const [table, rows] of Object.entries(before)) {
    await db.$extendTables<Record<string, Row>>().insertInto(table).values(rows).execute();
  }
}

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend, { migrated: false });
  let db: Database;

  beforeEach(async () => {
    db = await database.open();
    await fill(db, [initial]);
    expect(namesOf(await pendingMigrations(db))).toEqual(namesOf(migrations.slice(1)));
    await migrate(db);
  });

  test("every settlement is as it was", async () => {
    const ledger = createTestLedger(db, now);
    for (const [txNonce, state] of states.entries()) {
      const { balance, balanceBlock, ...claim } = paymentOf(state, { amount: 30n });
      expect(await ledger.find(claim.id)).toMatchObject({
        ...claim,
        organizationId: "shop",
        asset: asset.toLowerCase(),
        nonceSpace: asset.toLowerCase(),
        window: { first: 1n, last: validBefore[state] - 1n },
        state,
        txNonce,
        transactionHash: hashOf(`transaction ${txNonce}`),
        deliveredAt: state === "settled" ? time - 4_000 : null,
        failure: state === "failed" ? "the transaction was reverted" : null,
      });
    }
    const listed = await ledger.list({ organizationId: "shop" }, { limit: 10 });
    expect(listed.settlements.map(({ state }) => state)).toEqual([...states].reverse());
  });

  test("what was on its way goes on: watched, counted against the balance, and concluded", async () => {
    const ledger = createTestLedger(db, now);
    const open = await ledger.openAttempts(chainId, operator);
    expect(open.map(({ attempt }) => attempt.hash)).toEqual([hashOf("transaction 0")]);
    // 30 are under way and 60 were paid out after the balance was read: of 100, 10 are left.
    const [tooMuch, enough] = [paymentOf("a", { amount: 11n }), paymentOf("b", { amount: 10n })];
    const { outcomes, attempt } = await ledger.claimAll([tooMuch, enough]);
    expect(outcomes).toEqual(["stale_balance", "claimed"]);
    expect(attempt?.txNonce).toBe(4);
    await ledger.mine(0, [settled(paymentOf("submitted"))]);
    expect(await ledger.find(paymentOf("submitted").id)).toMatchObject({ state: "settled" });
  });

  test("leases, answers, and failures that are followed up are still there", async () => {
    const ledger = createTestLedger(db, now);
    expect(await ledger.acquireLease(paymentOf("submitted").id, "another")).toBe(false);
    expect(await ledger.beginIdempotent("shop", "key", "body")).toEqual({
      status: "answered",
      answer: '{"success":true}',
    });
    const [failure] = await ledger.takeDueFailures(chainId, 10, time + 1_000);
    expect(failure?.settlement.id).toBe(paymentOf("failed").id);
  });

  test("which pepper the keys have is known from the first one that is used", async () => {
    const withOther = createOrganizations({ db, pepper: "another pepper", now });
    expect(await withOther.checkPepper()).toBe("unknown");
    await withOther.createKey("shop", { scopes: ["verify"] });
    expect(await withOther.checkPepper()).toBe("unknown");
    const organizations = createOrganizations({ db, pepper, now });
    await organizations.authenticate(key);
    await expect.poll(() => organizations.checkPepper()).toBe("right");
    expect(await withOther.checkPepper()).toBe("wrong");
  });

  test("organizations and their keys work on, and their audit trail begins", async () => {
    const organizations = createOrganizations({ db, pepper, now, actor: "alice" });
    expect(await organizations.authenticate(key)).toEqual({
      organization: { id: "shop", name: "Shop", recipients: { base: addressOf(0xbeef) }, limits: {} },
      keyId: "old",
      scopes: ["verify", "settle"],
    });
    expect(await organizations.listChanges("shop")).toEqual([]);
    await organizations.setLimits("shop", "base", { refusePayersWithCode: true });
    expect((await organizations.find("shop"))?.limits).toMatchObject({
      base: { refusePayersWithCode: true },
    });
    await organizations.setLimits("shop", "base", { minimumAmount: 5n });
    await organizations.rotateKey("old", { graceMs: 1_000 });
    expect((await organizations.listChanges("shop")).map(({ number }) => number)).toEqual([1, 2, 3]);
  });
});

describe.each(backends)("from the second version, on $name", (backend) => {
  const database = useTestDatabase(backend, { migrated: false });

  test("listings give what they gave, by every filter", async () => {
    const db = await database.open();
    await fill(db, [initial, operations]);
    expect(namesOf(await migrate(db))).toEqual(namesOf(migrations.slice(2)));
    const ledger = createTestLedger(db, now);
    const statesOf = async (filter: SettlementFilter) =>
      (await ledger.list({ organizationId: "shop", ...filter }, { limit: 10 })).settlements.map(
        ({ state }) => state,
      );
    const newestFirst = [...states].reverse();
    expect(await statesOf({})).toEqual(newestFirst);
    expect(await statesOf({ network: "base" })).toEqual(newestFirst);
    expect(await statesOf({ network: "polygon" })).toEqual([]);
    expect(await statesOf({ payer: addressOf(1) })).toEqual(newestFirst);
    expect(await statesOf({ payer: addressOf(2) })).toEqual([]);
    expect(await statesOf({ organizationId: undefined, payer: addressOf(1) })).toEqual(newestFirst);
    for (const state of states) expect(await statesOf({ state })).toEqual([state]);
    expect(await statesOf({ payer: addressOf(1), network: "base", state: "failed" })).toEqual(["failed"]);
  });
});
