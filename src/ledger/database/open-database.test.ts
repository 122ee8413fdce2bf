import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReady } from "../../service/health/check-database.ts";
import type { OrganizationTables } from "../../service/organizations/organization-rows.ts";
import type { KitError } from "../../util/errors.ts";
import { migrate, openDatabase } from "./open-database.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-database-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("a URL that cannot work is refused with what would", () => {
  test.each([
    ["", "must begin with sqlite: or postgres://"],
    ["./facilitator.db", "must begin with sqlite: or postgres://"],
    ["mysql://localhost/x402", "must begin with sqlite: or postgres://"],
    ["SQLITE:./facilitator.db", "must begin with sqlite: or postgres://"],
    ["sqlite:", "names no file"],
    ["sqlite://facilitator.db", "must be written sqlite:PATH, without slashes before the path"],
    ["sqlite:///var/lib/facilitator.db", "must be written sqlite:PATH, without slashes before the path"],
    ["sqlite:/no/such/folder/facilitator.db", "the folder /no/such/folder does not exist"],
  ])("%s", async (url, problem) => {
    await expect(openDatabase({ url })).rejects.toMatchObject({
      name: "ConfigurationError",
      problems: [{ name: "DATABASE_URL", problem, example: "sqlite:./facilitator.db" }],
    });
  });

  test("without repeating it, as it may hold a password", async () => {
    const error = await openDatabase({ url: "postgres://x402:hunter2@db/x402" }).catch((error) => error);
    expect(`${error.message} ${error.stack}`).not.toContain("hunter2");
  });
});

describe("a file", () => {
  test("keeps what was written after it is closed", async () => {
    const url = `sqlite:${join(folder, "kept.db")}`;
    const first = await openDatabase({ url });
    await migrate(first);
    await first
      .$extendTables<OrganizationTables>()
      .insertInto("organizations")
      .values({ id: "shop", name: "Shop", created_at: 1 })
      .execute();
    await first.destroy();

    const second = await openDatabase({ url });
    const rows = await second
      .$extendTables<OrganizationTables>()
      .selectFrom("organizations")
      .select(["id", "name"])
      .execute();
    await second.destroy();
    expect(rows.map((row) => ({ ...row }))).toEqual([{ id: "shop", name: "Shop" }]);
  });

  test("can be read by its owner alone", async () => {
    const path = join(folder, "private.db");
    const db = await openDatabase({ url: `sqlite:${path}` });
    await migrate(db);
    const modes = [path, `${path}-wal`, `${path}-shm`].map((file) =>
      (statSync(file).mode & 0o777).toString(8),
    );
    await db.destroy();
    expect(modes).toEqual(["600", "600", "600"]);
  });

  test("leaves no side files behind when it is closed", async () => {
    const path = join(folder, "closed.db");
    const db = await openDatabase({ url: `sqlite:${path}` });
    await migrate(db);
    await db.destroy();
    expect(() => statSync(`${path}-wal`)).toThrow();
  });

  test("that is something else is refused and left as it is", async () => {
    const path = join(folder, "letter.txt");
    writeFileSync(path, "Dear Sir or Madam, ".repeat(100));
    const error = await openDatabase({ url: `sqlite:${path}` }).catch((error) => error);
    expect(error.message).toBe(`The database ${path} could not be opened`);
    expect(error.cause.message).toBe("The file is no SQLite database, or its beginning is damaged");
    expect(error.cause.cause.message).toBe("file is not a database");
    expect(statSync(path).size).toBe(1900);
  });

  test.each([
    ["its beginning", 0, "The file is no SQLite database, or its beginning is damaged"],
    ["a page", 100, "The database file is damaged"],
  ])("of which %s is damaged is kept, and the last backup to be restored", async (_, from, problem) => {
    const path = join(folder, `damaged-${from}.db`);
    const db = await openDatabase({ url: `sqlite:${path}` });
    await migrate(db);
    await db.destroy();
    const damaged = readFileSync(path).fill(0xa5, from, 4_000);
    writeFileSync(path, damaged);
    const error: Error = await openReady(`sqlite:${path}`).then(
      () => new Error("was opened"),
      (error) => error,
    );
    expect(error.message).toContain(problem);
    const { hints } = error as KitError;
    expect(hints.join()).toMatch(
      / keep the file, .* and restore the last backup: see Backups in docs\/guides\/operations\.md /,
    );
    expect(readFileSync(path)).toEqual(damaged);
  });
});

describe("a file that this user may only read", () => {
  /** Another user of the machine, for tests that run as root, which may write everything. */
  const asOther = process.getuid?.() === 0 ? 65_534 : undefined;

  test("is refused at once, and says so", async () => {
    const readOnly = mkdtempSync(join(tmpdir(), "x402-kit-read-only-"));
    const path = join(readOnly, "facilitator.db");
    const db = await openDatabase({ url: `sqlite:${path}` });
    await migrate(db);
    await db.destroy();
    chmodSync(path, 0o444);
    chmodSync(readOnly, 0o555);
    if (asOther !== undefined) process.seteuid?.(asOther);
    const error = await openDatabase({ url: `sqlite:${path}` }).catch((error) => error);
    if (asOther !== undefined) process.seteuid?.(0);
    chmodSync(readOnly, 0o755);
    rmSync(readOnly, { recursive: true });
    expect(error.message).toBe(`The database ${path} could not be opened`);
    expect(error.hints.join()).toContain("that this user may write");
  });
});

test("memory databases are empty and apart from each other", async () => {
  const [one, other] = await Promise.all([
    openDatabase({ url: "sqlite::memory:" }),
    openDatabase({ url: "sqlite::memory:" }),
  ]);
  await migrate(one);
  await expect(
    other.$extendTables<OrganizationTables>().selectFrom("organizations").selectAll().execute(),
  ).rejects.toThrow("no such table: organizations");
  await Promise.all([one.destroy(), other.destroy()]);
});

test("rows that refer to nothing are refused", async () => {
  const db = await openDatabase({ url: "sqlite::memory:" });
  await migrate(db);
  const orphan = db
    .$extendTables<OrganizationTables>()
    .insertInto("recipients")
    .values({ organization_id: "nobody", network: "base", recipient: "0x01" })
    .execute();
  await expect(orphan).rejects.toThrow("FOREIGN KEY constraint failed");
  await db.destroy();
});
