import { expect, test } from "vitest";
import { exampleBody } from "../../../test/support/example-payment.ts";
import { namedContract, permitBody } from "../../../test/support/generated-bodies.ts";
import { hostileValues, replacedEverywhere } from "../../../test/support/hostile-values.ts";
import { parsePaymentRequest } from "../../methods/methods.ts";
import { membersOf, parseJson } from "../../util/json.ts";
import { type Explanation, explain } from "./explain-input.ts";
import { explainRefusal, explanationOf, formatExplanations } from "./explanations.ts";

/** An explanation as text for a terminal. */
const formatExplanation = ({ findings, ...about }: Explanation) =>
  formatExplanations(findings.map(explanationOf), about);

const contract = namedContract;
const contracts = { mainnet: contract, testnet: contract } as const;

// Of a contract wallet, as far as can be told: no signer is looked for.
const signature = `0x${"02".repeat(66)}` as const;
const v1 = exampleBody({ signature });
const v2 = exampleBody({ signature, x402Version: 2 });

const inputs: readonly [string, unknown][] = [
  ["a request of version 1", v1],
  ["a request of version 2", v2],
  ["a payment header", v2.paymentPayload],
  ["a payment of scheme upto", permitBody("upto", signature)],
  ["a challenge", { x402Version: 1, accepts: [v1.paymentRequirements] }],
  ["an answer", { success: false, errorReason: "insufficient_funds", errorMessage: "", network: "base" }],
  ["a success", { success: true, transaction: `0x${"ab".repeat(32)}`, network: "base" }],
  ["a verdict", { isValid: false, invalidReason: "invalid_payload", invalidMessage: "no" }],
];

test.each(inputs)("%s is explained whatever stands in it", (_, input) => {
  for (const value of hostileValues) {
    for (const changed of replacedEverywhere(input, value)) {
      const text = JSON.stringify(changed);
      const explanation = explain(text, { contracts, now: 1_999_990_000n });
      expect(formatExplanation(explanation)).not.toBe("");
      expect(JSON.stringify(explanation)).toContain("findings");
      const refused = { reason: "invalid_payload", message: "no", request: undefined, received: text, at: 0 };
      expect(explainRefusal(refused, { contracts })[0]?.fix).toBeTypeOf("string");
    }
  }
});

/** Values that are nearly right somewhere. */
const nearly = [
  "0x12",
  "0",
  "1",
  "exact",
  "base",
  "eip155:8453",
  0,
  1,
  2,
  undefined,
  contract,
  "0".repeat(3),
];

const requirements = membersOf(v1.paymentRequirements);
const short = { network: "base", amount: "10000", asset: requirements.asset };

test.each<[string, Record<string, unknown>]>([
  ["1", v1],
  ["2", v2],
  ["1 in its short form", { ...v1, paymentRequirements: short }],
  ["2 by Permit2", permitBody("exact", signature)],
  ["2 of scheme upto", permitBody("upto", signature)],
])("nothing that the service cannot read is said to be right, in version %s", (_, body) => {
  const findingsIn = (input: unknown) =>
    explain(JSON.stringify(input ?? null), { contracts, now: 1_999_990_000n }).findings;
  expect(findingsIn(body)).toEqual([]);
  expect(findingsIn(body.paymentPayload)).toEqual([]);
  const missed: unknown[] = [];
  let refused = 0;
  for (const value of [...hostileValues, ...nearly]) {
    for (const changed of replacedEverywhere(body, value)) {
      const sent = parseJson(JSON.stringify(changed) ?? "");
      const parsed = parsePaymentRequest(sent);
      if (parsed.ok) continue;
      refused++;
      if (findingsIn(sent).length === 0) missed.push([parsed.invalid.message, sent]);
    }
    for (const paymentPayload of replacedEverywhere(body.paymentPayload, value)) {
      const sent = parseJson(JSON.stringify({ ...body, paymentPayload }));
      const parsed = parsePaymentRequest(sent);
      if (parsed.ok || findingsIn(membersOf(sent).paymentPayload).length > 0) continue;
      missed.push(["header", parsed.invalid.message, sent]);
    }
    for (const offer of replacedEverywhere(body.paymentRequirements, value)) {
      const sent = parseJson(JSON.stringify({ ...body, paymentRequirements: offer }));
      const parsed = parsePaymentRequest(sent);
      const accepts = [membersOf(sent).paymentRequirements ?? null];
      const x402Version = membersOf(body.paymentPayload).x402Version;
      if (parsed.ok || findingsIn({ x402Version, accepts }).length > 0) continue;
      // The offer is good, only not for this payment.
      if (parsed.invalid.situation === "schemes_differ") continue;
      missed.push(["challenge", parsed.invalid.message, accepts]);
    }
  }
  expect(missed).toEqual([]);
  expect(refused).toBeGreaterThan(300);
});

test.each([
  [{ ...requirements, payTo: undefined }, "accepts[0].payTo"],
  [{ ...requirements, payTo: null }, "accepts[0].payTo"],
  [{ ...requirements, scheme: undefined }, "accepts[0].scheme"],
  [{ ...requirements, maxAmountRequired: "0" }, "accepts[0].maxAmountRequired"],
  [{ ...requirements, maxTimeoutSeconds: "60" }, "accepts[0].maxTimeoutSeconds"],
])("an offer that cannot be paid is not said to be right: %j", (offer, at) => {
  const text = JSON.stringify({ x402Version: 1, accepts: [offer] });
  const { findings } = explain(text, { contracts, now: 1_999_990_000n });
  expect(findings).toMatchObject([{ at }]);
});

test.each([
  ["the zero address", `0x${"0".repeat(40)}`, "pay-to-nobody"],
  ["the token itself", String(requirements.asset), "pay-to-nobody"],
  ["an address with a mistyped digit", "0x857b06519E91e3A54538791bDbb0E22373e36b67", "bad-checksum"],
])("an offer whose payTo is %s is explained, however payTo is allowed", (_, payTo, mistake) => {
  const text = JSON.stringify({ x402Version: 1, accepts: [{ ...requirements, payTo }] });
  const { findings } = explain(text, { contracts, payTo: "any", now: 1_999_990_000n });
  expect(findings).toMatchObject([{ mistake, at: "accepts[0].payTo" }]);
});

test("of a challenge without a mistake nothing is said that only payments have", () => {
  const text = JSON.stringify({ x402Version: 1, accepts: [requirements] });
  expect(formatExplanation(explain(text, { contracts, now: undefined }))).toBe(
    "Nothing is wrong with it: each of its offers names what the facilitator settles.",
  );
});

test("the signature of the largest numbers is explained", () => {
  for (const value of [2n ** 256n - 1n, 10n ** 77n, 0n]) {
    const body = exampleBody({ amount: value, signature: `0x${"02".repeat(64)}1b` });
    const text = JSON.stringify(body).replace("2000000000", `${value}`);
    const { findings } = explain(text, { contracts, now: 0n });
    expect(findings.map(({ mistake }) => mistake)).toContain("signed-by-another-key");
  }
});

test("what is nested as deeply as a file can be is explained", () => {
  const deep = `${"[".repeat(300_000)}${"]".repeat(300_000)}`;
  const text = JSON.stringify(v1).replace(/"0x00000000000000000000000000000000000000F0"/, deep);
  const { findings } = explain(text, { contracts, now: 0n });
  expect(findings.map(({ got }) => got)).toContain("an array that cannot be shown");
});

test("a challenge of very many broken offers is explained", () => {
  const text = JSON.stringify({ x402Version: 1, accepts: Array(250_000).fill(0) });
  expect(explain(text, { contracts, now: 0n }).findings).toHaveLength(250_000);
});
