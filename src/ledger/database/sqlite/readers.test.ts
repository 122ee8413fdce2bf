import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OrganizationTables } from "../../../service/organizations/organization-rows.ts";
import { migrate, openDatabase } from "../open-database.ts";
import { inSnapshot, inTransaction } from "../transactions.ts";

/* Reading waits for no writer. */

let folder: string;
let db: Awaited<ReturnType<typeof openOrganizationsFile>>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-readers-"));
  db = await openOrganizationsFile();
  await create("first");
});
afterEach(async () => {
  await db.destroy();
  rmSync(folder, { recursive: true });
});

async function openOrganizationsFile() {
  const opened = await openDatabase({ url: `sqlite:${join(folder, "test.db")}` });
  await migrate(opened);
  return opened.$extendTables<OrganizationTables>();
}

const create = (id: string, inside: Pick<typeof db, "insertInto"> = db) =>
  inside.insertInto("organizations").values({ id, name: id, created_at: 1 }).execute();
const list = async (inside: Pick<typeof db, "selectFrom"> = db) =>
  (await inside.selectFrom("organizations").select("id").orderBy("id").execute()).map(({ id }) => id);

/** A transaction that has written and waits, as one does that asks a remote signer. */
function stall() {
  const answer = Promise.withResolvers<void>();
  const written = Promise.withResolvers<void>();
  const done = inTransaction(db, async (transaction) => {
    await create("slow", transaction);
    written.resolve();
    await answer.promise;
  });
  const finish = () => {
    answer.resolve();
    return done;
  };
  return { written: written.promise, finish };
}

describe("while a transaction waits for something slow", () => {
  test("what was committed before can be read", async () => {
    const slow = stall();
    await slow.written;
    expect(await list()).toEqual(["first"]);
    expect(await inSnapshot(db, (snapshot) => list(snapshot))).toEqual(["first"]);
    await slow.finish();
    expect(await list()).toEqual(["first", "slow"]);
  });

  test("others write when it has ended", async () => {
    const slow = stall();
    await slow.written;
    const other = create("other");
    await slow.finish();
    await other;
    expect(await list()).toEqual(["first", "other", "slow"]);
  });
});

test("a write that has resolved is visible on every connection", async () => {
  for (let number = 0; number < 20; number++) {
    await create(`number ${number}`);
    expect(await list()).toContain(`number ${number}`);
  }
});

test("a snapshot stays as it is while others write and read beside it", async () => {
  const seen = await inSnapshot(db, async (snapshot) => {
    const before = await list(snapshot);
    await create("meanwhile");
    expect(await list()).toEqual(["first", "meanwhile"]);
    return [before, await list(snapshot)];
  });
  expect(seen).toEqual([["first"], ["first"]]);
  expect(await list()).toEqual(["first", "meanwhile"]);
});

test("a snapshot cannot write", async () => {
  await expect(inSnapshot(db, (snapshot) => create("forbidden", snapshot))).rejects.toThrow(
    "cannot be written",
  );
  expect(await list()).toEqual(["first"]);
});
