import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { onParentEnd, paint, readParent, show } from "./terminal.ts";

test("painted text is coloured where there are colours, and the bare text elsewhere", () => {
  const line = `${paint.good("valid")} and ${paint.bad("invalid")}`;
  expect(show(line, false)).toBe("valid and invalid");
  expect(show(line, true)).toBe("\u001b[32mvalid\u001b[39m and \u001b[31minvalid\u001b[39m");
});

test("what is not painted stays as it is", () => {
  expect(show('plain {"a": 1}', true)).toBe('plain {"a": 1}');
});

describe("a command that npm runs", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test.each<{ situation: string; seen: readonly (string | undefined)[]; ends: boolean }>([
    { situation: "goes on while npm is there", seen: ["7", "7", "7"], ends: false },
    {
      situation: "ends when npm has ended, and its shell belongs to another process",
      seen: ["7", "7", "1"],
      ends: true,
    },
    { situation: "ends when its shell is gone", seen: ["7", "7", ""], ends: true },
    { situation: "goes on when no more files can be opened", seen: ["7", undefined, "7"], ends: false },
    { situation: "ends when npm ends after that", seen: ["7", undefined, "1"], ends: true },
    {
      situation: "goes on when no files could be opened at its start",
      seen: [undefined, "7", "7"],
      ends: false,
    },
    { situation: "goes on where processes have no such files", seen: ["", "", ""], ends: false },
  ])("$situation", ({ seen, ends }) => {
    const looks = [...seen];
    const act = vi.fn();
    onParentEnd(act, () => looks.shift());
    vi.advanceTimersByTime(500 * (seen.length - 1));
    expect(act).toHaveBeenCalledTimes(ends ? 1 : 0);
  });
});

test("a process that has ended is told from one whose parent cannot be read", () => {
  expect(readParent(2 ** 30)).toBe("");
  if (process.platform === "linux") expect(readParent(process.pid)).toBe(String(process.ppid));
});
