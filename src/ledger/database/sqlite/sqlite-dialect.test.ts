import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSqliteDialect } from "./sqlite-dialect.ts";

type Tables = { entry: { name: string } };

let folder: string;
let file: DatabaseSync;
let db: Kysely<Tables>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-sqlite-"));
  file = open();
  file.exec("PRAGMA journal_mode = WAL; CREATE TABLE entry (name TEXT PRIMARY KEY)");
  db = connect(file);
});
afterEach(async () => {
  await db.destroy();
  if (file.isOpen) file.close();
  rmSync(folder, { recursive: true });
});

const open = () => new DatabaseSync(join(folder, "test.db"));
const connect = (to: DatabaseSync, options: { lockTimeoutMs?: number } = {}) =>
  new Kysely<Tables>({ dialect: createSqliteDialect(to, options) });
const begin = (on = db) => on.startTransaction().execute();
const add = (name: string, on: Pick<typeof db, "insertInto"> = db) =>
  on.insertInto("entry").values({ name }).execute();

/** Committed rows, as another process finds them. */
function committed(): unknown[] {
  const other = open();
  try {
    return other
      .prepare("SELECT name FROM entry ORDER BY rowid")
      .all()
      .map(({ name }) => name);
  } finally {
    other.close();
  }
}

async function names(): Promise<unknown[]> {
  const rows = await db.selectFrom("entry").select("name").orderBy(sql`rowid`).execute();
  return rows.map(({ name }) => name);
}

describe("one after the other", () => {
  test("a statement outside of an open transaction waits for its end", async () => {
    const transaction = await begin();
    await add("inside", transaction);
    let done = false;
    const outside = add("outside").then(() => {
      done = true;
    });
    const read = names();
    await delay(20);
    expect(done).toBe(false);
    await transaction.rollback().execute();
    await outside;
    expect(await read).toEqual(["outside"]);
    expect(committed()).toEqual(["outside"]);
  });

  test("in the order in which they asked", async () => {
    const first = await begin();
    const order: string[] = [];
    const later = ["a", "b", "c", "d"].map(async (name, index) => {
      if (index % 2 === 0) {
        await add(name);
      } else {
        await db.transaction().execute(async (transaction) => {
          await delay(2);
          await add(name, transaction);
        });
      }
      order.push(name);
    });
    await first.commit().execute();
    await Promise.all(later);
    expect(await names()).toEqual(["a", "b", "c", "d"]);
    expect(order).toEqual(["a", "b", "c", "d"]);
  });

  test("transactions that read, wait and write do not interleave", async () => {
    file.exec("CREATE TABLE counter (value INTEGER); INSERT INTO counter VALUES (0)");
    await Promise.all(
      Array.from({ length: 50 }, () =>
        db.transaction().execute(async (transaction) => {
          const { rows } = await sql<{ value: number }>`SELECT value FROM counter`.execute(transaction);
          await delay(0);
          await sql`UPDATE counter SET value = ${Number(rows[0]?.value) + 1}`.execute(transaction);
        }),
      ),
    );
    expect((await sql`SELECT value FROM counter`.execute(db)).rows).toEqual([{ value: 50 }]);
  });
});

test("a long queue does not keep everything else waiting", async () => {
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(Array.from({ length: 2_000 }, (_, index) => add(`entry ${index}`)));
  counting = false;
  expect(turns).toBeGreaterThan(4);
});

describe("done means committed", () => {
  test("for a statement and for a transaction", async () => {
    await add("statement");
    expect(committed()).toEqual(["statement"]);
    const transaction = await begin();
    await add("transaction", transaction);
    expect(committed()).toEqual(["statement"]);
    await transaction.commit().execute();
    expect(committed()).toEqual(["statement", "transaction"]);
  });

  test("for each of many at once", async () => {
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        await add(`entry ${index}`);
        expect(committed()).toContain(`entry ${index}`);
      }),
    );
  });

  test("a read tells nothing that is not committed", async () => {
    const writes = [add("one"), add("two")];
    const seen = await names();
    expect(committed()).toEqual(expect.arrayContaining(seen));
    await Promise.all(writes);
  });
});

describe("one that fails is undone alone", () => {
  test("a statement among others", async () => {
    await add("taken");
    const results = await Promise.allSettled(["a", "taken", "b"].map((name) => add(name)));
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(committed()).toEqual(["taken", "a", "b"]);
  });

  test("a transaction between others", async () => {
    await Promise.all([
      add("before"),
      (async () => {
        const transaction = await begin();
        await add("undone", transaction);
        await transaction.rollback().execute();
      })(),
      add("after"),
    ]);
    expect(committed()).toEqual(["before", "after"]);
  });

  test("any mixture ends as if each had been alone", async () => {
    const step = fc.record({
      name: fc.integer({ min: 0, max: 8 }).map(String),
      kind: fc.constantFrom("statement", "commit", "throw"),
      pause: fc.integer({ min: 0, max: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        file.exec("DELETE FROM entry");
        const outcomes = await Promise.all(
          steps.map(async ({ name, kind, pause }) => {
            if (kind === "statement") {
              return add(name).then(
                () => name,
                () => null,
              );
            }
            const done = db.transaction().execute(async (transaction) => {
              for (let turn = 0; turn < pause; turn++) await Promise.resolve();
              await add(name, transaction);
              if (kind === "throw") throw new Error("changed its mind");
              return name;
            });
            return done.catch(() => null);
          }),
        );
        expect(committed()).toEqual(outcomes.filter((name) => name !== null));
        // In order, so that the first to name an entry has it.
        const expected = new Set<string>();
        for (const { name, kind } of steps) if (kind === "statement" || kind === "commit") expected.add(name);
        expect(committed()).toEqual([...expected]);
      }),
      { numRuns: 60 },
    );
  });
});

describe("when SQLite gives a transaction up", () => {
  // What a full disk does, without filling one.
  const loseTransaction = () => file.exec("ROLLBACK");

  test("none of its later statements is committed alone", async () => {
    const outcome = db.transaction().execute(async (transaction) => {
      await add("unfinished", transaction);
      loseTransaction();
      await add("alone", transaction);
    });
    await expect(outcome).rejects.toThrow("The transaction has ended");
    await add("the next one");
    expect(committed()).toEqual(["the next one"]);
  });

  test("not even of those that were sent together", async () => {
    const outcome = db.transaction().execute(async (transaction) => {
      loseTransaction();
      await Promise.all([add("one", transaction), add("two", transaction)]);
    });
    await expect(outcome).rejects.toThrow("The transaction has ended");
    expect(committed()).toEqual([]);
  });

  test("its commit fails", async () => {
    const outcome = db.transaction().execute(async (transaction) => {
      await add("lost", transaction);
      loseTransaction();
    });
    await expect(outcome).rejects.toThrow("no transaction is active");
    await add("the next one");
    expect(committed()).toEqual(["the next one"]);
  });
});

describe("beside another connection to the same file", () => {
  test("waits for it without stopping the process", async () => {
    const other = connect(open());
    const transaction = await begin(other);
    await add("theirs", transaction);
    const ours = add("ours");
    await delay(30);
    await transaction.commit().execute();
    await ours;
    await other.destroy();
    expect(committed()).toEqual(["theirs", "ours"]);
  });

  test("gives up when it holds the lock for good, and goes on afterwards", async () => {
    const other = connect(open());
    const impatient = connect(open(), { lockTimeoutMs: 50 });
    const transaction = await begin(other);
    await expect(add("ours", impatient)).rejects.toThrow("The database is in use by another process");
    await expect(begin(impatient)).rejects.toThrow("The database is in use by another process");
    await transaction.rollback().execute();
    await add("later", impatient);
    await Promise.all([impatient.destroy(), other.destroy()]);
    expect(committed()).toEqual(["later"]);
  });

  test("reads what is committed in the meantime", async () => {
    await add("old");
    const other = connect(open());
    const transaction = await begin(other);
    await add("theirs", transaction);
    expect(await names()).toEqual(["old"]);
    await transaction.rollback().execute();
    await other.destroy();
  });

  test("both get their turns when both are busy", async () => {
    const other = connect(open());
    const work = (one: typeof db, prefix: string) =>
      Promise.all(Array.from({ length: 300 }, (_, index) => add(prefix + index, one)));
    await Promise.all([work(db, "a"), work(other, "b")]);
    await other.destroy();
    expect(await names()).toHaveLength(600);
  });
});

test("closing finishes what is queued", async () => {
  await names();
  const writes = [add("one"), add("two")];
  await db.destroy();
  await Promise.all(writes);
  expect(committed()).toEqual(["one", "two"]);
  await expect(add("three")).rejects.toThrow("destroyed");
});

test.each([undefined, true])("refuses %s, which a column cannot hold as it is", async (value) => {
  await expect(sql`INSERT INTO entry (name) VALUES (${value})`.execute(db)).rejects.toThrow(
    `cannot store a value of type ${typeof value}`,
  );
});
