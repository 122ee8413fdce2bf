import { expect, test } from "vitest";
import { createUuid } from "./create-uuid.ts";

test("ids are random UUIDs of version 4, each another one", () => {
  const ids = Array.from({ length: 2_000 }, createUuid);
  expect(new Set(ids).size).toBe(ids.length);
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  expect(ids.filter((id) => !uuid.test(id))).toEqual([]);
  // Every place that is not fixed takes every digit.
  const seen = Array.from({ length: 36 }, (_, place) => new Set(ids.map((id) => id[place])).size);
  expect(seen.filter((count) => count === 16)).toHaveLength(30);
  expect(seen.filter((count) => count === 4)).toHaveLength(1);
});
