import { expect, test } from "vitest";
import { InvalidValue, readDatabaseUrl, readRate } from "./values.ts";

test("a rate is read", () => {
  expect(readRate("200/5000")).toEqual({ perSecond: 200, burst: 5_000 });
  expect(readRate(" 1 / 1 ")).toEqual({ perSecond: 1, burst: 1 });
});

test.each(["200", "/", "200/", "/5000", "200/5000/1", "0/10", "10/0", "1.5/10", "-1/5", "many/5", "1e3/5"])(
  "%j is refused",
  (text) => {
    expect(() => readRate(text)).toThrow(InvalidValue);
  },
);

test.each([
  "postgres://user@/x402?host=/var/run/postgresql",
  "postgres:///x402?host=/var/run/postgresql",
  "postgres://user@%2Fvar%2Frun%2Fpostgresql/x402",
  "postgres://user:p%40ss@db.example:5433/x402?sslmode=verify-full",
])("the database %s is taken as it is", (url) => {
  expect(readDatabaseUrl(url)).toBe(url);
});
