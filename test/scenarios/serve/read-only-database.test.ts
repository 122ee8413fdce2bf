import { afterAll, beforeAll, expect, test } from "vitest";
import { leaveSharedPostgres, sharedPostgres } from "../../support/databases.ts";
import { keyOf } from "../../support/key-accounts.ts";
import { openMigrated } from "../../support/open-migrated.ts";
import { runHere } from "../../support/run-here.ts";
import { pepper } from "../../support/serve/deployed-chains.ts";

let url: string;
beforeAll(async () => {
  const server = await sharedPostgres();
  url = await server.createDatabase();
  await (await openMigrated(url)).destroy();
  const name = new URL(url).pathname.slice(1);
  await server.query(url, `alter database ${name} set default_transaction_read_only = on`);
});
afterAll(leaveSharedPostgres);

const variables = () => ({
  BASE_RPC_URL: "http://127.0.0.1:1",
  FACILITATOR_CONTRACT_MAINNET: `0x${"c0".repeat(20)}`,
  OPERATOR_PRIVATE_KEY: keyOf("operator"),
  DATABASE_URL: url,
  API_KEY_PEPPER: pepper,
  PORT: "0",
  LOG_LEVEL: "silent",
});

test("serve does not start on a Postgres that takes no writes, and says how to change that", async () => {
  const { code, stderr } = await runHere(["serve"], variables());
  expect(code).toBe(1);
  expect(stderr).toContain("takes no writes");
  expect(stderr).toContain("default_transaction_read_only");
});

test("doctor calls it failed", async () => {
  const { code, stdout } = await runHere(["doctor", "--json"], variables());
  expect(code).toBe(1);
  const parts: { name: string; checks: object[] }[] = JSON.parse(stdout).parts;
  expect(parts.find(({ name }) => name === "database")?.checks).toContainEqual(
    expect.objectContaining({
      name: "database",
      status: "failed",
      detail: expect.stringContaining("takes no writes"),
    }),
  );
});

test("commands that only read go on", async () => {
  expect(await runHere(["settlements", "list"], { DATABASE_URL: url })).toMatchObject({ code: 0 });
});
