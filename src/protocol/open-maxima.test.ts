import { expect, test } from "vitest";
import { createOpenMaxima } from "./open-maxima.ts";

const account = { organizationId: "org", network: "base", asset: "0xAA", payer: "0x01" } as const;
const hundred = { limit: 40n, last: 1_000n, available: 100n, now: 900n, bringsApproval: false };

test("as many maxima are covered as the balance holds, until they are settled or have ended", () => {
  const maxima = createOpenMaxima();
  expect(maxima.open(account, { ...hundred, id: "0x1" })).toBeUndefined();
  expect(maxima.open(account, { ...hundred, id: "0x2", last: 950n })).toBeUndefined();
  const others = { ids: ["0x1", "0x2"], taken: 80n, retryAfterSeconds: 51 };
  expect(maxima.open(account, { ...hundred, id: "0x3" })).toEqual(others);
  // Once more the same payment is no other one.
  expect(maxima.open({ ...account, asset: "0xaa" }, { ...hundred, id: "0x2" })).toBeUndefined();
  maxima.close(account, "0x1");
  expect(maxima.open(account, { ...hundred, id: "0x3" })).toBeUndefined();
  expect(maxima.open(account, { ...hundred, id: "0x4" })).toMatchObject({ retryAfterSeconds: 101 });
  expect(maxima.open(account, { ...hundred, id: "0x4", now: 1_001n })).toBeUndefined();
});

test("each organization, payer, asset and network has a count of its own", () => {
  const maxima = createOpenMaxima();
  const whole = { ...hundred, limit: 100n };
  expect(maxima.open(account, { ...whole, id: "0x1" })).toBeUndefined();
  for (const other of [
    { organizationId: "another" },
    { network: "polygon" },
    { asset: "0xbb" as const },
    { payer: "0x02" as const },
  ]) {
    expect(maxima.open({ ...account, ...other }, { ...whole, id: "0x2" })).toBeUndefined();
  }
  expect(maxima.open(account, { ...whole, id: "0x2" })).toBeDefined();
});

test("a maximum that is good for longer is counted for five minutes", () => {
  const maxima = createOpenMaxima();
  const whole = { ...hundred, limit: 100n, last: 100_000n };
  expect(maxima.open(account, { ...whole, id: "0x1" })).toBeUndefined();
  expect(maxima.open(account, { ...whole, id: "0x2" })).toMatchObject({ retryAfterSeconds: 301 });
  expect(maxima.open(account, { ...whole, id: "0x2", now: 1_200n })).toMatchObject({ retryAfterSeconds: 1 });
  expect(maxima.open(account, { ...whole, id: "0x2", now: 1_201n })).toBeUndefined();
});

test("a maximum that brings its approval is not counted, and covered by what others leave of the balance", () => {
  const maxima = createOpenMaxima();
  const bringing = { ...hundred, limit: 60n, bringsApproval: true };
  for (const id of ["0x1", "0x2", "0x3"] as const)
    expect(maxima.open(account, { ...bringing, id })).toBeUndefined();
  expect(maxima.open(account, { ...hundred, id: "0x4", limit: 50n, available: 50n })).toBeUndefined();
  expect(maxima.open(account, { ...bringing, id: "0x1" })).toMatchObject({ ids: ["0x4"], taken: 50n });
});

test("of countless maxima of one payer the oldest are forgotten", () => {
  const maxima = createOpenMaxima();
  const many = { ...hundred, limit: 1n, available: 1_001n };
  for (let index = 0; index < 1_001; index++) {
    expect(maxima.open(account, { ...many, id: `0x${index}` })).toBeUndefined();
  }
  // One of the thousand and one is not counted any more.
  expect(maxima.open(account, { ...many, id: "0xa" })).toBeUndefined();
});
