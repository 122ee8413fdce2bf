import { expect, test } from "vitest";
import { warnOfPlainText } from "./check-database.ts";

test("a Postgres on another machine without TLS is warned of, without its URL", async () => {
  const warning = await warnOfPlainText("postgres://user:hunter2@db.example/x402");
  expect(warning).toMatchInlineSnapshot(`
    {
      "advice": "Add sslmode=verify-full to the parameters of DATABASE_URL.",
      "detail": "Postgres is on another machine and not reached by TLS: its password and payments can be read on the way",
      "name": "database",
      "status": "warning",
    }
  `);
});

test.each([
  "postgres://user@db.example/x402?sslmode=verify-full",
  "postgres://user@localhost/x402",
  "sqlite:./a.db",
])("%s is not", async (url) => {
  expect(await warnOfPlainText(url)).toBeNull();
});
