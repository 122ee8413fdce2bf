import { describe, expect, test } from "vitest";
import { UndeterminedError } from "../../util/errors.ts";
import { createLogger, wouldLog } from "./logger.ts";

/** The line that an error makes. */
function logged(error: unknown): { text: string; err: Record<string, unknown> } {
  const lines: string[] = [];
  createLogger("info", { write: (line: string) => void lines.push(line) }).error({ err: error }, "failed");
  const text = lines.join("");
  return { text, err: JSON.parse(text).err };
}

describe("an error", () => {
  test("is logged with its code, its hints and every cause behind it", () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const error = new UndeterminedError("base could not be reached", {
      cause: new Error("endpoint 1", { cause: refused }),
      hints: ["Check BASE_RPC_URL"],
    });
    expect(logged(error).err).toMatchObject({
      type: "UndeterminedError",
      message: "base could not be reached",
      hints: ["Check BASE_RPC_URL"],
      cause: { message: "endpoint 1", cause: { message: "connect ECONNREFUSED", code: "ECONNREFUSED" } },
    });
  });

  test("is logged with a stack where it may be a bug, and without where it was foreseen", () => {
    expect(logged(new TypeError("bug")).err.stack).toEqual(expect.stringContaining("logger.test"));
    const foreseen = new UndeterminedError("the node is down", { cause: new Error("timeout") });
    expect(logged(foreseen).text).not.toContain("stack");
  });

  test("of several errors, as of a connection tried at two addresses, is logged with all of them", () => {
    const error = new AggregateError([new Error("over IPv6"), new Error("over IPv4")]);
    expect(logged(error).err).toMatchObject({ errors: [{ message: "over IPv6" }, { message: "over IPv4" }] });
  });

  test("that is its own cause is logged", () => {
    const error = new Error("round");
    error.cause = error;
    expect(logged(error).err).toMatchObject({ message: "round", cause: { message: "round" } });
  });

  test.each([
    ["text", "just text"],
    ["nothing", undefined],
    ["null", null],
    ["an object without a prototype", Object.create(null)],
    ["a symbol", Symbol("s")],
  ])("that is %s does not break the logger", (_name, thrown) => {
    expect(logged(thrown).text).toContain('"msg":"failed"');
  });
});

test.each([
  ["an RPC URL", "https://base.example/v2/secret-of-a-provider?x=1", "secret-of-a-provider"],
  ["a database URL", "postgres://user:pass-word@db:5432/kit", "pass-word"],
  ["an API key", `x4k_0a1b_${"c".repeat(64)}`, "cccc"],
  ["a signature", `0x${"ab".repeat(65)}`, "ab".repeat(20)],
  ["a signed transaction", `0x02f8${"cd".repeat(300)}`, "cd".repeat(20)],
])("%s in a message, a hint, a cause or a stack is cut", (_name, secret, hidden) => {
  const error = new UndeterminedError(`failed: ${secret} (given)`, {
    cause: new Error(`because of "${secret}"`),
    hints: [`see ${secret}`],
  });
  const { text } = logged(error);
  expect(text).not.toContain(hidden);
  expect(text).toContain("(given)");
});

test("hashes and addresses are not cut: people search for them", () => {
  const hash = `0x${"ab".repeat(32)}`;
  const address = `0x${"cd".repeat(20)}`;
  expect(logged(new Error(`${hash} of ${address}`)).err).toMatchObject({ message: `${hash} of ${address}` });
});

test("wouldLog says whether a line would be written", () => {
  const levels = ["debug", "info", "warn"] as const;
  const would = (level: string) => levels.map((line) => wouldLog({ level }, line));
  expect(would("info")).toEqual([false, true, true]);
  expect(would("silent")).toEqual([false, false, false]);
  expect(would("trace")).toEqual([true, true, true]);
});

test("a line leaves no character that controls a terminal, and stays the same JSON", () => {
  const message = "\u001b[2J\u009b31m\u202e";
  const { text, err } = logged(new UndeterminedError(message));
  expect(text).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
  expect(err.message).toBe(message);
});
