import { expect, test } from "vitest";
import { lastLines } from "./run-command.ts";

test("the error above a stack trace is shown", () => {
  const { stack = "" } = new Error("no shop today");
  const printed = ["listening\n\n", `/shop.js:1\nthrow shop;\n^\n\n${stack}\n\nNode.js v24\n`];
  expect(lastLines(printed).slice(0, 5)).toEqual([
    "  listening",
    "  /shop.js:1",
    "  throw shop;",
    "  ^",
    "  Error: no shop today",
  ]);
});

test("only the last twenty lines are shown", () => {
  const lines = lastLines([Array.from({ length: 50 }, (_, index) => `line ${index}`).join("\n")]);
  expect([lines.length, lines[0]]).toEqual([20, "  line 30"]);
});
