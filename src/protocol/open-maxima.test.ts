import { expect, test } from "vitest";
import { createOpenMaxima } from "./open-maxima.ts";

const account = { network: "base", asset: "0xAA", payer: "0x01" } as const;
const hundred = { limit: 40n, last: 1_000n, available: 100n, now: 900n };

test("as many maxima are covered as the balance holds, until they are settled or have ended", () => {
  const maxima = createOpenMaxima();
  expect(maxima.open(account, { ...hundred, id: "0x1" })).toBe(true);
  expect(maxima.open(account, { ...hundred, id: "0x2" })).toBe(true);
  expect(maxima.open(account, { ...hundred, id: "0x3" })).toBe(false);
  // Once more the same payment is no other one.
  expect(maxima.open({ ...account, asset: "0xaa" }, { ...hundred, id: "0x2" })).toBe(true);
  maxima.close(account, "0x1");
  expect(maxima.open(account, { ...hundred, id: "0x3" })).toBe(true);
  expect(maxima.open(account, { ...hundred, id: "0x4" })).toBe(false);
  expect(maxima.open(account, { ...hundred, id: "0x4", now: 1_001n })).toBe(true);
});

test("each payer, asset and network has a count of its own", () => {
  const maxima = createOpenMaxima();
  const whole = { ...hundred, limit: 100n };
  expect(maxima.open(account, { ...whole, id: "0x1" })).toBe(true);
  for (const other of [{ network: "polygon" }, { asset: "0xbb" as const }, { payer: "0x02" as const }]) {
    expect(maxima.open({ ...account, ...other }, { ...whole, id: "0x2" })).toBe(true);
  }
  expect(maxima.open(account, { ...whole, id: "0x2" })).toBe(false);
});

test("of countless maxima of one payer the oldest are forgotten", () => {
  const maxima = createOpenMaxima();
  const many = { limit: 1n, last: 1_000n, available: 1_001n, now: 900n };
  for (let index = 0; index < 1_001; index++) {
    expect(maxima.open(account, { ...many, id: `0x${index}` })).toBe(true);
  }
  // One of the thousand and one is not counted any more.
  expect(maxima.open(account, { ...many, id: "0xa" })).toBe(true);
});
