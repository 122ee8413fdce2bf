import { describe, expect, test } from "vitest";
import { readToEnd } from "../../../test/support/read-part.ts";
import { withReasonOfMethod } from "../../protocol/catalogue.ts";
import { checkValidityWindow } from "../../protocol/checks.ts";
import { keptApproval } from "../approval.ts";
import type { Method } from "../method.ts";
import { exactPermit2Method, uptoPermit2Method } from "./permit2-methods.ts";
import { permit2Words } from "./permit2-payload.ts";

const address = (digit: number): `0x${string}` => `0x${`${digit}`.repeat(40)}`;

function payload(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const whole: Record<string, unknown> = {
    signature: `0x${"12".repeat(65)}`,
    permit2Authorization: {
      from: address(1),
      permitted: { token: address(2), amount: "10000" },
      ...{ spender: address(3), nonce: "7", deadline: "1740672154" },
      witness: { to: address(4), facilitator: address(5), validAfter: "0" },
    },
  };
  for (const [path, value] of Object.entries(changes)) put(whole, path.split("."), value);
  return whole;
}

function put(target: object, [name = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) Reflect.set(target, name, value);
  else put(Object(Reflect.get(target, name)), rest, value);
}

const served = { name: "base", facilitatorContract: address(4), assets: [] };

const readAll = (value: unknown, method: Method = exactPermit2Method) =>
  readToEnd(value, "payload", (part) => method.read(part, address(2), undefined));

function read(...given: Parameters<typeof readAll>) {
  const { value, malformed } = readAll(...given);
  expect(malformed).toEqual([]);
  return value;
}

describe("a permit is read in its one spelling", () => {
  test.each([
    ["permit2Authorization.nonce", "0x7"],
    ["permit2Authorization.nonce", "07"],
    ["permit2Authorization.nonce", ""],
    ["permit2Authorization.nonce", " 7"],
    ["permit2Authorization.nonce", "+7"],
    ["permit2Authorization.nonce", "7.0"],
    ["permit2Authorization.nonce", "7e0"],
    ["permit2Authorization.nonce", 7],
    ["permit2Authorization.nonce", `${2n ** 256n}`],
    ["permit2Authorization.deadline", "-1"],
    ["permit2Authorization.deadline", 1_740_672_154],
    ["permit2Authorization.permitted.amount", "0x10"],
    ["permit2Authorization.permitted.amount", undefined],
    ["permit2Authorization.permitted.token", "0x12"],
    ["permit2Authorization.permitted", []],
    ["permit2Authorization.witness", null],
    ["permit2Authorization.witness.validAfter", undefined],
    ["permit2Authorization.witness.to", 4],
    ["permit2Authorization.from", undefined],
    ["permit2Authorization.spender", ""],
    ["signature", undefined],
    ["signature", "signed"],
  ])("%s as %j is refused", (path, value) => {
    expect(readAll(payload({ [path]: value })).malformed).toEqual([
      expect.stringContaining(`payload.${path}: `),
    ]);
  });

  test("the largest nonce is one", () => {
    const { nonce } = read(payload({ "permit2Authorization.nonce": `${2n ** 256n - 1n}` }));
    expect(nonce).toBe(`0x${"f".repeat(64)}`);
  });

  test("who submits it is needed for scheme upto, and no matter for scheme exact", () => {
    const without = payload({ "permit2Authorization.witness.facilitator": undefined });
    expect(readAll(without, uptoPermit2Method).malformed).toEqual([
      expect.stringContaining("witness.facilitator: must be a string"),
    ]);
    expect(read(without)).toEqual(read(payload()));
  });
});

test.each([{}, [], null, undefined, "permit2Authorization", { authorization: {} }])(
  "%j is no payload of Permit2",
  (other) => expect(exactPermit2Method.owns(other)).toBe(false),
);

test("a payload is one of Permit2 by its member, however malformed that is", () => {
  expect(exactPermit2Method.owns({ permit2Authorization: 5, authorization: {} })).toBe(true);
  expect(exactPermit2Method.payerOf({ permit2Authorization: { from: 5 } })).toBe(5);
});

test("a permit is described member by member, as it was signed", async () => {
  const described = await uptoPermit2Method.describe(read(payload(), uptoPermit2Method));
  expect(described.map(({ label, value, kind }) => `${label}: ${value} (${kind})`)).toEqual([
    `from: ${address(1)} (other)`,
    `permitted.token: ${address(2)} (other)`,
    "permitted.amount: 10000 (amount)",
    `spender: ${address(3)} (other)`,
    "nonce: 7 (other)",
    "deadline: 1740672154 (time)",
    `witness.to: ${address(4)} (recipient)`,
    `witness.facilitator: ${address(5)} (other)`,
    "witness.validAfter: 0 (time)",
  ]);
  const exact = await exactPermit2Method.describe(read(payload()));
  expect(exact.map(({ label }) => label)).not.toContain("witness.facilitator");
});

test.each([
  ["the first second", 101n, undefined],
  ["the second before", 100n, "permit2_not_yet_valid"],
  ["six seconds before the deadline", 994n, undefined],
  ["five seconds before the deadline", 995n, "permit2_deadline_expired"],
] as const)("both ends of a permit count: in %s", (_, chainTime, reason) => {
  const payment = read(
    payload({ "permit2Authorization.witness.validAfter": "101", "permit2Authorization.deadline": "1000" }),
  );
  expect(payment.window).toEqual({ first: 101n, last: 1_000n });
  const request = { payment, words: permit2Words, requirements: { maxTimeoutSeconds: 60 } };
  const refusal = checkValidityWindow(request, chainTime, served);
  expect(refusal && withReasonOfMethod(refusal, { words: permit2Words, x402Version: 2 }).reason).toBe(reason);
});

test("of an approval that comes along, its own members are kept, and what cannot be read is remembered as that", () => {
  const at = address(2);
  const numbers = { amount: "1", nonce: "2", deadline: "3" };
  const info = {
    from: at,
    asset: at,
    spender: at,
    ...numbers,
    signature: `0x${"1b".repeat(65)}`,
    version: "1",
  };
  const kept = (given: object) => keptApproval({ eip2612GasSponsoring: { info: given } });
  expect(kept({ ...info, note: "x".repeat(10_000) })).toEqual(info);
  for (const [name, wrong] of [
    ["from", "0x12"],
    ["amount", 1],
    ["nonce", "0x2"],
    ["deadline", "03"],
    ["signature", `0x${"1b".repeat(64)}`],
    ["version", "2"],
  ] as const) {
    expect(kept({ ...info, [name]: wrong }), name).toBe("malformed");
  }
  // What the shop has declared, passed on by a client that signs none.
  expect(kept({ description: "…", version: "1" })).toBeUndefined();
  expect(keptApproval(undefined)).toBeUndefined();
});
