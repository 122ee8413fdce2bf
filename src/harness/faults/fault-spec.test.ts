import { describe, expect, test } from "vitest";
import { networkNames } from "../../protocol/networks.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { readFaultSpec } from "./fault-spec.ts";

function complaints(raw: unknown): string {
  try {
    readFaultSpec(raw);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  return "none";
}

describe("a fault read from data", () => {
  test("is given as it is when nothing is wrong with it", () => {
    const spec = {
      network: "base",
      kind: "error",
      method: "eth_*",
      nth: 2,
      times: 3,
      code: -32000,
      message: "",
    };
    expect(readFaultSpec(spec)).toEqual(spec);
  });

  test("is told everything that is wrong with it at once", () => {
    const spec = {
      network: "bass",
      kind: "delay",
      method: "eth call",
      nth: 0,
      times: 1.5,
      ms: "5",
      color: 1,
    };
    expect(complaints(spec).replace(networkNames.join(", "), "NETWORKS")).toMatchInlineSnapshot(`
      "network: "bass" is not one of NETWORKS (for example base)
      method: "eth call" is not the name of a method, in which * stands for any letters (for example eth_sendRawTransaction*)
      nth: 0 is not a whole number from 1 to 1000000 (for example 2)
      times: 1.5 is not a whole number from 1 to 1000000 (for example 1)
      ms: "5" is not a whole number from 1 to 600000 (for example 500)
      color: a fault of kind delay has none"
    `);
  });

  test("of an unknown kind is told the kinds, and what else is wrong", () => {
    expect(complaints({ network: "base", kind: "earthquake", nth: -1 })).toMatchInlineSnapshot(`
      "kind: "earthquake" is not one of answer-lost, delay, rate-limited, reset, error, malformed, stale-head, status, hang, receipt-of-another, hold-blocks, drop, reorg, base-fee, empty-operator (for example answer-lost)
      nth: -1 is not a whole number from 1 to 1000000 (for example 2)"
    `);
  });

  test("is told what it needs, and what was given in its place", () => {
    const delay = { network: "base", kind: "delay" };
    expect(complaints(delay)).toBe("ms: is needed (for example 500)");
    expect(complaints({ ...delay, ms: 0 })).toMatch(/^ms: 0 is not a whole number from 1 to 600000 /);
  });

  test("between a shop and the facilitator is refused a route that is never asked for", () => {
    const reset = { network: "facilitator", kind: "reset" };
    for (const method of ["foo", "eth_*", "Settle", "v1"]) {
      expect(complaints({ ...reset, method })).toBe(
        `method: "${method}" is none of the facilitator's: verify, settle, supported (for example settle)`,
      );
    }
    for (const method of ["settle", "s*", "*"]) expect(complaints({ ...reset, method })).toBe("none");
  });

  test.each([
    ["nothing", null],
    ["a list", []],
    ["a reorganization deeper than the states that are kept", { network: "base", kind: "reorg", depth: 64 }],
    ["a status that is none of trouble", { network: "base", kind: "status", status: 200 }],
    ["a base fee beyond 64 bits", { network: "base", kind: "base-fee", wei: `${2n ** 64n}` }],
    ["a base fee that is a number", { network: "base", kind: "base-fee", wei: 1 }],
    ["calls for a fault of the chain", { network: "base", kind: "hold-blocks", nth: 1 }],
    ["a hash that is too short", { network: "base", kind: "drop", hash: "0x12" }],
    ["a kind that every object has", { network: "base", kind: "constructor" }],
  ])("is refused when it is %s", (_, raw) => {
    expect(complaints(raw)).not.toBe("none");
  });
});
