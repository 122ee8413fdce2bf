import { expect, test } from "vitest";
import { forTimes, timeFields, timesFrom } from "./payment-times.ts";

test("times are counted from one that is given; without a beginning a payment is valid at once", () => {
  expect(timesFrom(1_000n, { until: 60 })).toEqual({ validAfter: 0n, validBefore: 1_060n });
  expect(timesFrom(1_000n, { from: -30, until: -1n })).toEqual({ validAfter: 970n, validBefore: 999n });
});

test("each time has what is made of its own field", () => {
  const names = forTimes(({ name }) => name);
  expect(names).toEqual({ validAfter: "validAfter", validBefore: "validBefore" });
  expect(timeFields.map(({ name }) => name)).toEqual(Object.keys(names));
  expect(forTimes(({ isEnd }) => isEnd)).toEqual({ validAfter: false, validBefore: true });
});
