import { afterEach, describe, expect, test, vi } from "vitest";
import { openDatabase } from "../open-database.ts";
import { findPlainTextHost, pinSslMode } from "./open-postgres.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe("passwords and payments cross the network in plain text", () => {
  test.each([
    ["postgres://user:password@db.example/x402", "db.example"],
    ["postgresql://user@10.0.0.5:5433/x402", "10.0.0.5"],
    ["postgres://user@[2001:db8::1]/x402", "2001:db8::1"],
    ["postgres://user@db.example/x402?sslmode=disable", "db.example"],
    ["postgres://user@localhost/x402?host=db.example", "db.example"],
  ])("%s", async (url, host) => {
    expect(await findPlainTextHost(url)).toBe(host);
  });
});

describe("they are encrypted, or stay on this machine", () => {
  test.each([
    "postgres://user@db.example/x402?sslmode=verify-full",
    "postgres://user@db.example/x402?sslmode=require",
    "postgres://user@db.example/x402?ssl=true",
    "postgres://user@db.example/x402?uselibpqcompat=true&sslmode=require",
    "postgres://user@localhost/x402",
    "postgres://user@127.0.0.1:5432/x402",
    "postgres://user@[::1]/x402",
    "postgres://user@/x402?host=/var/run/postgresql",
    "postgres:///x402?host=/var/run/postgresql",
    "sqlite:./facilitator.db",
    "nonsense",
  ])("%s", async (url) => {
    expect(await findPlainTextHost(url)).toBeNull();
  });

  test("as PGSSLMODE says", async () => {
    vi.stubEnv("PGSSLMODE", "verify-full");
    expect(await findPlainTextHost("postgres://user@db.example/x402")).toBeNull();
  });
});

test.each(["prefer", "require", "verify-ca"])(
  "sslmode=%s prints no warning between the lines of the log",
  async (mode) => {
    const warnings = vi.spyOn(process, "emitWarning");
    const url = `postgres://user:hunter2@127.0.0.1:1/x402?sslmode=${mode}&application_name=a`;
    const error = await openDatabase({ url }).catch((error) => error);
    expect(error.message).toBe("The database cannot be reached");
    expect(warnings).not.toHaveBeenCalled();
    expect(pinSslMode(url)).toContain("sslmode=verify-full&application_name=a");
  },
);

test("a certificate that is not there is named, and the password is not", async () => {
  const url = "postgres://user:hunter2@127.0.0.1:1/x402?sslmode=verify-full&sslrootcert=/no/such/ca.pem";
  const error = await openDatabase({ url }).catch((error) => error);
  expect(error.message).toContain("names a file that cannot be read: /no/such/ca.pem");
  expect(`${error.message} ${error.stack}`).not.toContain("hunter2");
});
