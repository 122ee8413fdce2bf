import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSqliteSession, type SqliteSession } from "./session.ts";

let folder: string;
let file: DatabaseSync;
let session: SqliteSession;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-session-"));
  file = open();
  file.exec("PRAGMA journal_mode = WAL; CREATE TABLE entry (name TEXT PRIMARY KEY)");
  session = createSqliteSession(file);
});
afterEach(async () => {
  if (file.isOpen) await session.close();
  rmSync(folder, { recursive: true });
});

const open = () => new DatabaseSync(join(folder, "test.db"));
const insert = "INSERT INTO entry (name) VALUES (?)";
const select = "SELECT name FROM entry ORDER BY rowid";
const add = (name: string) => session.run(insert, [name], false);

/** What another process would find: only what was committed. */
function committed(): unknown[] {
  const other = open();
  try {
    return other
      .prepare(select)
      .all()
      .map(({ name }) => name);
  } finally {
    other.close();
  }
}

async function names(): Promise<unknown[]> {
  return (await session.run(select, [], true)).rows.map(({ name }) => name);
}

describe("one after the other", () => {
  test("a statement outside of an open transaction waits for its end", async () => {
    const unit = await session.begin();
    unit.run(insert, ["inside"]);
    let done = false;
    const outside = add("outside").then(() => {
      done = true;
    });
    const read = names();
    await delay(20);
    expect(done).toBe(false);
    unit.rollback();
    await outside;
    expect(await read).toEqual(["outside"]);
    expect(committed()).toEqual(["outside"]);
  });

  test("in the order in which they asked", async () => {
    const first = await session.begin();
    const order: string[] = [];
    const later = ["a", "b", "c", "d"].map(async (name, index) => {
      if (index % 2 === 0) {
        await add(name);
      } else {
        const unit = await session.begin();
        await delay(2);
        unit.run(insert, [name]);
        await unit.commit();
      }
      order.push(name);
    });
    await first.commit();
    await Promise.all(later);
    expect(await names()).toEqual(["a", "b", "c", "d"]);
    expect(order).toEqual(["a", "b", "c", "d"]);
  });

  test("transactions that read, wait and write do not interleave", async () => {
    file.exec("CREATE TABLE counter (value INTEGER); INSERT INTO counter VALUES (0)");
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const unit = await session.begin();
        const value = Number(unit.run("SELECT value FROM counter", []).rows[0]?.value);
        await delay(0);
        unit.run("UPDATE counter SET value = ?", [value + 1]);
        await unit.commit();
      }),
    );
    const { rows } = await session.run("SELECT value FROM counter", [], true);
    expect(rows[0]?.value).toBe(50);
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
    const unit = await session.begin();
    unit.run(insert, ["transaction"]);
    expect(committed()).toEqual(["statement"]);
    await unit.commit();
    expect(committed()).toEqual(["statement", "transaction"]);
  });

  test("for each of many at once, whose commits are shared", async () => {
    const watcher = open();
    const versions = new Set<unknown>();
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        await add(`entry ${index}`);
        expect(committed()).toContain(`entry ${index}`);
        // It changes with every commit that another connection makes.
        versions.add(watcher.prepare("PRAGMA data_version").get()?.data_version);
      }),
    );
    watcher.close();
    expect(versions.size).toBeLessThan(50);
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
    const results = await Promise.allSettled(["a", "taken", "b"].map(add));
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(committed()).toEqual(["taken", "a", "b"]);
  });

  test("a transaction between others", async () => {
    await Promise.all([
      add("before"),
      (async () => {
        const unit = await session.begin();
        unit.run(insert, ["undone"]);
        unit.rollback();
      })(),
      add("after"),
    ]);
    expect(committed()).toEqual(["before", "after"]);
  });

  test("any mixture ends as if each had been alone", async () => {
    const step = fc.record({
      name: fc.integer({ min: 0, max: 8 }).map(String),
      kind: fc.constantFrom("statement", "commit", "rollback", "throw"),
      pause: fc.integer({ min: 0, max: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        // Units that were rolled back are awaited by no caller: this makes sure that all of the steps before are over.
        await session.run("SELECT 1", [], false);
        file.exec("DELETE FROM entry");
        const outcomes = await Promise.all(
          steps.map(async ({ name, kind, pause }) => {
            if (kind === "statement") {
              return add(name).then(
                () => name,
                () => null,
              );
            }
            const unit = await session.begin();
            try {
              for (let turn = 0; turn < pause; turn++) await Promise.resolve();
              unit.run(insert, [name]);
              if (kind === "throw") throw new Error("changed its mind");
              if (kind === "rollback") {
                unit.rollback();
                return null;
              }
              await unit.commit();
              return name;
            } catch {
              unit.rollback();
              return null;
            }
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

  test("those that were finished but not committed hear of it", async () => {
    const finished = add("finished");
    const unit = await session.begin();
    unit.run(insert, ["unfinished"]);
    loseTransaction();
    expect(() => unit.run("INSERT INTO nowhere VALUES (1)", [])).toThrow("no such table");
    await expect(finished).rejects.toThrow("no such table");
    expect(() => unit.run(insert, ["alone"])).toThrow("The transaction has ended");
    await expect(unit.commit()).rejects.toThrow("no such table");
    expect(committed()).toEqual([]);
  });

  test("even at the commit", async () => {
    const unit = await session.begin();
    unit.run(insert, ["lost"]);
    const end = unit.commit();
    loseTransaction();
    await expect(end).rejects.toThrow("no transaction is active");
    await add("the next one");
    expect(committed()).toEqual(["the next one"]);
  });
});

describe("beside another session on the same file", () => {
  test("waits for it without stopping the process", async () => {
    const other = createSqliteSession(open());
    const unit = await other.begin();
    unit.run(insert, ["theirs"]);
    const ours = add("ours");
    await delay(30);
    await unit.commit();
    await ours;
    await other.close();
    expect(committed()).toEqual(["theirs", "ours"]);
  });

  test("gives up when it holds the lock for good, and goes on afterwards", async () => {
    const other = createSqliteSession(open());
    const impatient = createSqliteSession(open(), { lockTimeoutMs: 50 });
    const unit = await other.begin();
    await expect(impatient.run(insert, ["ours"], false)).rejects.toThrow(
      "The database is in use by another process",
    );
    await expect(impatient.begin()).rejects.toThrow("The database is in use by another process");
    unit.rollback();
    await impatient.run(insert, ["later"], false);
    await Promise.all([impatient.close(), other.close()]);
    expect(committed()).toEqual(["later"]);
  });

  test("reads what is committed in the meantime", async () => {
    await add("old");
    const other = createSqliteSession(open());
    const unit = await other.begin();
    unit.run(insert, ["theirs"]);
    expect(await names()).toEqual(["old"]);
    unit.rollback();
    await other.close();
  });

  test("both get their turns when both are busy", async () => {
    const other = createSqliteSession(open());
    const work = (one: SqliteSession, prefix: string) =>
      Promise.all(Array.from({ length: 300 }, (_, index) => one.run(insert, [prefix + index], false)));
    await Promise.all([work(session, "a"), work(other, "b")]);
    await other.close();
    expect(await names()).toHaveLength(600);
  });
});

test("closing finishes what is queued", async () => {
  const writes = [add("one"), add("two")];
  await session.close();
  await Promise.all(writes);
  expect(committed()).toEqual(["one", "two"]);
  await expect(add("three")).rejects.toThrow("database is not open");
});

test("refuses values that a column cannot hold as they are", async () => {
  await expect(session.run(insert, [undefined], false)).rejects.toThrow(
    "cannot store a value of type undefined",
  );
  await expect(session.run(insert, [true], false)).rejects.toThrow("cannot store a value of type boolean");
});
