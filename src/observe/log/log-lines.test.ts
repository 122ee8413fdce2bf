import { pino } from "pino";
import { expect, test } from "vitest";
import { renderLogLine } from "./log-lines.ts";

const at = new Date(2026, 0, 2, 3, 4, 5).getTime();

/** The line that pino, configured as the service's, writes for a call. */
function written(log: (logger: pino.Logger) => void): string {
  let line = "";
  const timestamp = () => `,"time":${at}`;
  log(pino({ level: "trace", timestamp }, { write: (text) => (line += text) }));
  return line;
}

test("a request is one short line", () => {
  const line = written((log) =>
    log.info({ reqId: "537812be", method: "POST", route: "/v1/verify", status: 200, ms: 16 }, "request"),
  );
  expect(renderLogLine(line)).toMatchInlineSnapshot(
    `"03:04:05 info request method=POST route=/v1/verify status=200 ms=16"`,
  );
});

test("a warning says why, and what to do", () => {
  const err = {
    message: "base could not be reached",
    hints: ["RPC endpoint 1 of 1: refused"],
    stack: "Error\n  at x",
  };
  const line = written((log) => log.warn({ network: "base", err }, "trying again"));
  expect(renderLogLine(line)).toMatchInlineSnapshot(`
    "03:04:05 warn trying again network=base
      because: base could not be reached
      RPC endpoint 1 of 1: refused"
  `);
});

test("an error has its stack", () => {
  const err = {
    message: "unforeseen",
    stack: "Error: unforeseen\n    at here (a.ts:1:1)\n    at there (b.ts:2:2)",
  };
  const line = written((log) => log.error({ err }, "no verdict"));
  expect(renderLogLine(line)).toMatchInlineSnapshot(`
    "03:04:05 error no verdict
      because: unforeseen
      at here (a.ts:1:1)
      at there (b.ts:2:2)"
  `);
});

test("other text is printed unchanged", () => {
  expect(renderLogLine("something else\n")).toBe("something else");
  expect(renderLogLine('{"level":"unknown"}')).toBe('{"level":"unknown"}');
});

test("what a node or client wrote can neither control the terminal nor look like a line of its own", () => {
  const hostile = "\u001b[2J\u009b31m\u202e\r\n03:04:05 info all is well";
  const line = written((log) => log.warn({ network: hostile, err: { message: hostile } }, "trying again"));
  for (const shown of [renderLogLine(line), renderLogLine(`a log of others: ${hostile}`)]) {
    expect(shown).toContain("\\u001b[2J\\u009b31m\\u202e");
    expect(shown).not.toMatch(/[^\P{Cc}\n\r]|\u202e/u);
  }
  expect(renderLogLine(line).split("\n")).toHaveLength(2);
});
