import { expect, test } from "vitest";
import { isLike } from "./shop-buyer.ts";

const answerOf = (body: string, type: string) => ({
  status: 200,
  headers: new Headers({ "content-type": type }),
  body,
});
const json = "application/json";

test.each([
  ["the same words", "the goods", "the goods", true],
  ["most of them", "the goods at 10:01", "the goods at 10:02", true],
  ["other words", "thank you", "the goods", false],
  ["JSON of the same members", '{"report":"rain","at":2}', '{"report":"all is well","at":1}', true],
  [
    "JSON of another member",
    '{"report":"all is well","at":1,"id":3}',
    '{"report":"all is well","at":1}',
    false,
  ],
  ["other JSON", '{"received":true}', '{"report":"all is well"}', false],
] as const)("an answer of %s", (_what, body, goods, expected) => {
  expect(isLike(answerOf(body, json), answerOf(goods, json))).toBe(expected);
});

test("an answer of another type is none of the goods", () => {
  expect(isLike(answerOf("the goods", "text/html"), answerOf("the goods", "text/plain"))).toBe(false);
});
