import { copyFileSync, linkSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Database } from "./database.ts";
import { migrate, openDatabase } from "./open-database.ts";
import { createWriteCheck, inTransaction, UndoneError, untilDone } from "./transactions.ts";

let folder: string;
let db: Database;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-full-"));
  db = await openDatabase({ url: `sqlite:${join(folder, "test.db")}` });
  await migrate(db);
});
afterEach(async () => {
  await db.destroy();
  rmSync(folder, { recursive: true });
});

/** Lets the file grow no further, as a full disk does. */
const fill = () => sql`pragma max_page_count = 1`.execute(db);
const makeRoom = () => sql`pragma max_page_count = 1000000`.execute(db);
const store = (at: number) =>
  sql`insert into commits (id, fenced, at) values (${"x".repeat(10_000) + at}, 0, ${at})`.execute(db);

describe("on a full disk", () => {
  test("a write fails with what is wrong and what to do, and works again once there is room", async () => {
    await fill();
    const error = await store(1).catch((error) => error);
    expect(error).toMatchObject({
      name: "UndeterminedError",
      message: "The disk of the database is full",
      hints: ["Make room; the service goes on by itself."],
    });
    await makeRoom();
    await store(2);
    const { rows } = await sql<{ at: number }>`select at from commits where id like 'x%'`.execute(db);
    expect(rows.map(({ at }) => at)).toEqual([2]);
  });
});

describe("the check", () => {
  test("finds nothing wrong with a database that can be written, and leaves one row at most", async () => {
    const check = createWriteCheck(db);
    expect([await check(), await check(), await check()]).toEqual([null, null, null]);
    const { rows } = await sql`select id from commits`.execute(db);
    expect(rows).toHaveLength(1);
  });

  test.each([
    ["removed", (path: string) => rmSync(path)],
    [
      "replaced",
      (path: string) => {
        copyFileSync(path, `${path}.backup`);
        renameSync(`${path}.backup`, path);
      },
    ],
  ])("says that a file was %s under it, until the file is back", async (_how, change) => {
    const path = join(folder, "test.db");
    const check = createWriteCheck(db);
    linkSync(path, `${path}.link`);
    change(path);
    expect(await check()).toMatch(/^The database file was removed or replaced/);
    renameSync(`${path}.link`, path);
    expect(await check()).toBeNull();
  });

  test("says when nothing can be written, and when it can again", async () => {
    const check = createWriteCheck(db);
    await sql`alter table commits rename to elsewhere`.execute(db);
    expect(await check()).toBe("The database cannot be written");
    await sql`alter table elsewhere rename to commits`.execute(db);
    expect(await check()).toBeNull();
  });

  test("takes a write that waits for others for no problem, and does not wait for it itself", async () => {
    const check = createWriteCheck(db);
    const slow = Promise.withResolvers<void>();
    const transaction = inTransaction(db, async (inside) => {
      await sql`insert into commits (id, fenced, at) values ('slow', 0, 1)`.execute(inside);
      await slow.promise;
    });
    expect(await check()).toBeNull();
    expect(await check()).toBeNull();
    slow.resolve();
    await transaction;
    expect(await check()).toBeNull();
  });
});

test("patience with a database starts at the first failure, not while work waits for its turn", async () => {
  let time = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => time);
  let tries = 0;
  const work = async () => {
    if (++tries === 1) time += 60_000;
    if (tries < 6) throw new UndoneError("the connection was cut");
    return tries;
  };
  try {
    expect(await untilDone(work)).toBe(6);
  } finally {
    clock.mockRestore();
  }
});
