import { expect, test } from "vitest";
import { warnOfOpenFiles } from "./open-files.ts";

test("a process that may open too few connections for its settles is warned of", () => {
  expect(warnOfOpenFiles(4_000, 256)).toMatchInlineSnapshot(`
    [
      {
        "example": "1",
        "name": "MAX_SETTLES",
        "problem": "4000 settles may wait at a time, and this process may open 256 files and connections (ulimit -n): allow it 4256 (LimitNOFILE in systemd, --ulimit nofile in Docker), or lower MAX_SETTLES",
      },
    ]
  `);
  expect(warnOfOpenFiles(4_000, 4_255)).toMatchObject([{ name: "MAX_SETTLES", example: "3999" }]);
});

test("one that may open enough is not, nor one whose limit is not known", () => {
  expect(warnOfOpenFiles(4_000, 4_256)).toEqual([]);
  expect(warnOfOpenFiles(4_000, Number.POSITIVE_INFINITY)).toEqual([]);
});

test("the limit of this process is read", () => {
  expect(warnOfOpenFiles(Number.MAX_SAFE_INTEGER / 2)).toMatchObject([{ name: "MAX_SETTLES" }]);
});
