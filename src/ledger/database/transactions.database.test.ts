import { expect, test } from "vitest";
import { sharedPostgres } from "../../../test/support/databases.ts";
import { createTestLedger } from "../../../test/support/ledger/test-ledger.ts";
import { migrate, openDatabase } from "./open-database.ts";
import { createWriteCheck } from "./transactions.ts";

test("a Postgres that takes reads only is no database to settle with, until it takes writes again", async () => {
  const server = await sharedPostgres();
  const url = await server.createDatabase();
  const open = () => openDatabase({ url });
  const first = await open();
  await migrate(first);
  expect(await createWriteCheck(first)()).toBeNull();
  await first.destroy();

  // As a server is that has become a standby, or whose operator has stopped all writing.
  const name = new URL(url).pathname.slice(1);
  await server.query(url, `alter database ${name} set default_transaction_read_only = on`);
  const readOnly = await open();
  expect(await createWriteCheck(readOnly)()).toBe("The database takes no writes");
  await expect(createTestLedger(readOnly, Date.now).introduce()).rejects.toMatchObject({
    name: "UndeterminedError",
    message: "The database takes no writes",
  });
  await readOnly.destroy();

  await server.query(url, "set default_transaction_read_only = off");
  await server.query(url, `alter database ${name} reset default_transaction_read_only`);
  const again = await open();
  expect(await createWriteCheck(again)()).toBeNull();
  await again.destroy();
});
