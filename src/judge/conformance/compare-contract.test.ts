import { expect, test } from "vitest";
import type { FixtureAnswer } from "../../fixtures/engine/answer.ts";
import { compareContract } from "./compare.ts";

const payer = "0x652026B65e32ffC7487F89D68D208977789a04d3";
const hash = `0x${"ab".repeat(32)}`;
const ours = { "content-type": "application/json", "x-request-id": "<request-id>" };
const json = (status: number, body: object, headers: Record<string, string> = ours): FixtureAnswer => ({
  kind: "json",
  status,
  headers,
  body,
});

const valid = json(200, { isValid: true, payer, network: "base", authContext: { organizationId: "org" } });
const invalid = json(200, {
  isValid: false,
  invalidReason: "insufficient_funds",
  invalidMessage: "…",
  payer,
});
const settled = json(200, { success: true, transaction: "<transaction>", network: "base", payer });
const refused = json(200, {
  success: false,
  errorReason: "insufficient_funds",
  transaction: "",
  network: "base",
});
const unauthorized = json(401, { title: "…", isValid: false });

test.each<[string, FixtureAnswer, FixtureAnswer]>([
  ["other headers, and fewer members", valid, json(200, { isValid: true }, {})],
  ["the payer in other letters", valid, json(200, { isValid: true, payer: payer.toLowerCase() })],
  ["null for what is not there", valid, json(200, { isValid: true, invalidReason: null })],
  ["other words", invalid, json(200, { isValid: false, invalidReason: "insufficient_funds", payer })],
  ["any hash", settled, json(200, { success: true, transaction: hash, network: "base" })],
  ["an error of another form", unauthorized, json(401, { error: "no" })],
])("%s: as good", (_, expected, actual) => {
  expect(compareContract(expected, actual)).toEqual([]);
});

test.each<[string, FixtureAnswer, FixtureAnswer, readonly string[]]>([
  ["another verdict", invalid, json(200, { isValid: true }), ["body.isValid", "body.invalidReason"]],
  ["another payer", valid, json(200, { isValid: true, payer: `0x${"1".repeat(40)}` }), ["body.payer"]],
  [
    "a reason beside a success",
    valid,
    json(200, { isValid: true, invalidReason: "x" }),
    ["body.invalidReason"],
  ],
  ["no hash", settled, json(200, { success: true, network: "base" }), ["body.transaction"]],
  ["no network", settled, json(200, { success: true, transaction: hash }), ["body.network"]],
  [
    "a hash of what failed",
    refused,
    json(200, { success: false, errorReason: "insufficient_funds", transaction: hash, network: "base" }),
    ["body.transaction"],
  ],
  ["an error instead of a verdict", valid, json(500, { isValid: true }), ["status"]],
  ["an error that says yes", unauthorized, json(401, { isValid: true }), ["body.isValid"]],
  ["a page", valid, { kind: "text", status: 200, headers: {}, text: "<html>" }, ["answer"]],
  ["nothing", valid, { kind: "reset" }, ["answer"]],
])("%s: another answer", (_, expected, actual, places) => {
  expect(compareContract(expected, actual).map(({ at }) => at)).toEqual(places);
});
