import { expect, test } from "vitest";
import { InvalidValue, readRate } from "./values.ts";

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
