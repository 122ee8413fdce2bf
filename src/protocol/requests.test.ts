import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { exampleBody } from "../../test/support/example-payment.ts";
import { generatedBodies } from "../../test/support/generated-bodies.ts";
import { parsePaymentRequest } from "../methods/methods.ts";
import { parseTakenRequest, takenMethods } from "../methods/taken-methods.ts";
import { testPayers } from "../payer/test-payers.ts";
import {
  type Invalid,
  invalidReasons,
  type Situation,
  settleErrorReason,
  settleErrorReasonsV1,
  situations,
} from "./catalogue.ts";
import { builtInNetworks, networks } from "./networks.ts";
import { createRequestReader } from "./requests.ts";
import { settlementId } from "./signed-payment.ts";

const contract = "0x00000000000000000000000000000000000000F0";

const request = (x402Version: 1 | 2) => exampleBody({ x402Version });

/** A request with one value set (or removed, by undefined) at a dotted path. */
function withValue(body: unknown, path: string, value: unknown): unknown {
  const copy = structuredClone(body);
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  let place = copy as Record<string, unknown>;
  for (const key of keys) place = place[key] as Record<string, unknown>;
  if (value === undefined) delete place[last];
  else place[last] = value;
  return copy;
}

function outcome(body: unknown) {
  const parsed = parsePaymentRequest(body);
  return parsed.ok ? "ok" : parsed.invalid.reason;
}

describe.each([1, 2] as const)("version %i", (version) => {
  test("a request of public clients is read completely", () => {
    const parsed = parsePaymentRequest(request(version));
    expect(parsed).toMatchObject({
      ok: true,
      request: {
        x402Version: version,
        network: version === 1 ? "base" : "eip155:8453",
        knownNetwork: { name: "base" },
        payer: testPayers.funded.address,
        payment: { limit: 10_000n, window: { first: 1n, last: 1_999_999_999n } },
        requirements: { amount: 10_000n, payTo: contract, asset: networks.base.usdc.address },
      },
    });
  });

  test("its settlement has the same id however the caller spells the payment", () => {
    const spelled = request(version);
    const lower: unknown = JSON.parse(
      JSON.stringify(spelled).replaceAll(/0x[0-9a-fA-F]+/g, (hex) => hex.toLowerCase()),
    );
    const id = settlementId(
      8453,
      networks.base.usdc.address,
      testPayers.funded.address,
      `0x${"01".repeat(32)}`,
    );
    for (const body of [spelled, lower]) {
      expect(parsePaymentRequest(body)).toMatchObject({ ok: true, request: { settlementId: id } });
    }
  });

  test("the x402Version beside paymentPayload may be left out", () => {
    expect(outcome(withValue(request(version), "x402Version", undefined))).toBe("ok");
  });

  test.each([99, "1", null, 3 - version])(
    "the x402Version beside paymentPayload decides nothing: %o",
    (other) => {
      expect(outcome(withValue(request(version), "x402Version", other))).toBe("ok");
    },
  );

  test("unknown keys are ignored", () => {
    expect(outcome(withValue(request(version), "paymentRequirements.outputSchema", { a: null }))).toBe("ok");
    expect(outcome(withValue(request(version), "paymentPayload.payload.authorization.memo", 1))).toBe("ok");
  });

  const authorization = "paymentPayload.payload.authorization";
  test.each([
    ["paymentPayload", undefined, "invalid_payload"],
    ["paymentPayload", "text", "invalid_payload"],
    ["paymentPayload", [], "invalid_payload"],
    ["paymentPayload.x402Version", undefined, "invalid_x402_version"],
    ["paymentPayload.x402Version", "1", "invalid_x402_version"],
    ["paymentPayload.x402Version", 3, "invalid_x402_version"],
    ["paymentPayload.payload", undefined, "invalid_payload"],
    ["paymentPayload.payload", null, "invalid_payload"],
    ["paymentPayload.payload.signature", 7, "invalid_payload"],
    ["paymentPayload.payload.signature", "0xabc", "invalid_payload"],
    ["paymentPayload.payload.signature", "abcd", "invalid_payload"],
    [`${authorization}.from`, "0x1234", "invalid_payload"],
    [`${authorization}.to`, undefined, "invalid_payload"],
    [`${authorization}.value`, 10_000, "invalid_payload"],
    [`${authorization}.value`, "", "invalid_payload"],
    [`${authorization}.value`, " 12", "invalid_payload"],
    [`${authorization}.value`, "0x10", "invalid_payload"],
    [`${authorization}.value`, "+5", "invalid_payload"],
    [`${authorization}.value`, "007", "invalid_payload"],
    [`${authorization}.value`, "1e3", "invalid_payload"],
    [`${authorization}.value`, "-1", "invalid_payload"],
    [`${authorization}.value`, (2n ** 256n).toString(), "invalid_payload"],
    [`${authorization}.value`, "9".repeat(10_000), "invalid_payload"],
    [`${authorization}.validAfter`, 0, "invalid_payload"],
    [`${authorization}.validBefore`, "1.5", "invalid_payload"],
    [`${authorization}.nonce`, `0x${"01".repeat(31)}`, "invalid_payload"],
    [`${authorization}.nonce`, `0x${"zz".repeat(32)}`, "invalid_payload"],
    ["paymentRequirements", undefined, "invalid_payment_requirements"],
    ["paymentRequirements", "text", "invalid_payment_requirements"],
    ["paymentRequirements.asset", "USDC", "invalid_payment_requirements"],
    ["paymentRequirements.payTo", 12, "invalid_payment_requirements"],
    ["paymentRequirements.scheme", "deferred", "unsupported_scheme"],
    ["paymentRequirements.scheme", 5, "invalid_payment_requirements"],
    ["paymentRequirements.network", "base-goerli", "invalid_network"],
    ["paymentRequirements.network", undefined, "invalid_payment_requirements"],
    ["paymentRequirements.maxTimeoutSeconds", "60", "invalid_payment_requirements"],
  ])("%s = %j is %s", (path, value, reason) => {
    expect(outcome(withValue(request(version), path, value))).toBe(reason);
  });

  test("the payer and the network are read from a request that is refused", () => {
    const parsed = parsePaymentRequest(withValue(request(version), "paymentPayload.payload.signature", 7));
    expect(parsed).toMatchObject({
      ok: false,
      envelope: {
        x402Version: version,
        payer: testPayers.funded.address,
        network: version === 1 ? "base" : "eip155:8453",
      },
    });
  });

  test("a network in the other version's spelling is unknown", () => {
    const [path, other] = version === 1 ? ["network", "eip155:8453"] : ["accepted.network", "base"];
    expect(outcome(withValue(request(version), `paymentPayload.${path}`, other))).toBe("invalid_network");
  });
});

test.each<[string, unknown, string]>([
  [
    "a body of version 1 that says version 2",
    withValue(request(1), "paymentPayload.x402Version", 2),
    "paymentPayload.accepted must be an object, or x402Version 1: this looks like a payment of version 1",
  ],
  [
    "a body of version 2 that says version 1",
    withValue(request(2), "paymentPayload.x402Version", 1),
    "paymentPayload.scheme must be a string, or x402Version 2: this looks like a payment of version 2",
  ],
  [
    "a version as text",
    withValue(request(1), "paymentPayload.x402Version", "1"),
    "paymentPayload.x402Version must be the number 1 or 2, not text",
  ],
  [
    "10^80",
    withValue(request(1), "paymentPayload.payload.authorization.value", `1${"0".repeat(80)}`),
    "paymentPayload.payload.authorization.value: is too large for a uint256: must be below 2^256",
  ],
  [
    "an amount of 30,000 digits",
    withValue(request(2), "paymentRequirements.amount", "9".repeat(30_000)),
    "paymentRequirements.amount: is too large for a uint256: must be below 2^256",
  ],
  [
    "a list for the authorization",
    withValue(request(1), "paymentPayload.payload.authorization", []),
    "paymentPayload.payload.authorization: must be an object",
  ],
  [
    "the name of version 1 for a network in version 2",
    withValue(request(2), "paymentPayload.accepted.network", "base"),
    "paymentPayload.accepted.network must be the CAIP-2 name of a supported network: eip155:8453 in version 2",
  ],
  [
    "a network that does not exist",
    withValue(request(2), "paymentPayload.accepted.network", "solana"),
    "paymentPayload.accepted.network must be the CAIP-2 name of a supported network, such as eip155:8453",
  ],
])("the message about %s says what to change", (_, body, message) => {
  expect(parsePaymentRequest(body)).toMatchObject({ ok: false, invalid: { message } });
});

describe("the two forms of v1 requirements", () => {
  const short = { amount: "10000", network: "base", asset: networks.base.usdc.address };
  const form = (requirements: object) => outcome({ ...request(1), paymentRequirements: requirements });
  const full = {
    scheme: "exact",
    network: "base",
    maxAmountRequired: "10000",
    payTo: contract,
    asset: networks.base.usdc.address,
  };

  test.each([
    ["short", short, "ok"],
    ["short with the recipient", { ...short, recipient: contract }, "ok"],
    ["short without the amount", { ...short, amount: undefined }, "invalid_payment_requirements"],
    ["short without the asset", { ...short, asset: undefined }, "invalid_payment_requirements"],
    ["full", full, "ok"],
    ["full without payTo", { ...full, payTo: undefined }, "invalid_payment_requirements"],
    ["full without the scheme", { ...full, scheme: undefined }, "invalid_payment_requirements"],
    ["both, agreeing", { ...full, ...short, recipient: contract.toLowerCase() }, "ok"],
    ["both, with two amounts", { ...full, amount: "9" }, "invalid_payment_requirements"],
    [
      "both, with two recipients",
      { ...full, ...short, recipient: short.asset },
      "invalid_payment_requirements",
    ],
  ])("%s", (_name, requirements, expected) => {
    expect(form(requirements)).toBe(expected);
  });
});

test("the code of a v1 settle says which half of the request has the wrong scheme or network", () => {
  const reasonOf = (path: string, value: string) => {
    const parsed = parsePaymentRequest(withValue(request(1), path, value));
    return parsed.ok ? undefined : settleErrorReason(parsed.invalid, 1);
  };
  expect(reasonOf("paymentPayload.scheme", "upto")).toBe("invalid_payload");
  expect(reasonOf("paymentRequirements.scheme", "upto")).toBe("invalid_payment_requirements");
  expect(reasonOf("paymentPayload.network", "solana")).toBe("invalid_payload");
  expect(reasonOf("paymentRequirements.network", "solana")).toBe("invalid_payment_requirements");
  expect(reasonOf("paymentRequirements.network", "polygon")).toBe("invalid_payment_requirements");
});

test("version 1 does not have Permit2, nor what only it can do", () => {
  const refusalOf = (body: unknown) => {
    const parsed = parsePaymentRequest(body);
    return parsed.ok ? "ok" : `${parsed.invalid.reason}: ${parsed.invalid.message}`;
  };
  const payload = { signature: "0x", permit2Authorization: {} };
  expect(refusalOf(withValue(request(1), "paymentPayload.payload", payload))).toBe(
    "invalid_payload: paymentPayload.payload is that of a payment of x402Version 2",
  );
  expect(refusalOf(withValue(request(2), "paymentPayload.payload", payload))).toBe(
    "invalid_payload: paymentPayload.payload.permit2Authorization.from: must be a string",
  );
  expect(refusalOf(withValue(request(1), "paymentRequirements.scheme", "upto"))).toBe(
    'unsupported_scheme: paymentRequirements.scheme must be "exact", not "upto", which needs version 2',
  );
  expect(refusalOf(withValue(request(2), "paymentRequirements.scheme", "exat"))).toBe(
    'unsupported_scheme: paymentRequirements.scheme must be "upto" or "exact" or "batch-settlement", not "exat"',
  );
  expect(refusalOf(withValue(request(2), "paymentRequirements.scheme", "upto"))).toMatch(
    /^invalid_upto_evm_scheme: The payment is of scheme exact, but paymentRequirements\.scheme is upto/,
  );
});

test("every reason has one of the five codes in v1, and is itself in v2", () => {
  for (const reason of invalidReasons) {
    for (const situation of Object.keys(situations) as Situation[]) {
      const refusal = { reason, situation };
      expect(settleErrorReasonsV1).toContain(settleErrorReason(refusal, 1));
      expect(settleErrorReason(refusal, 2)).toBe(reason);
    }
  }
});

test("any body is read or refused, and none makes it throw", () => {
  const anything = fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true });
  const paths = [
    "paymentPayload",
    "paymentRequirements",
    "paymentPayload.payload",
    "paymentPayload.payload.authorization",
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(1 as const, 2 as const),
      fc.constantFrom(...paths),
      anything,
      (version, path, value) => {
        const parsed = parsePaymentRequest(withValue(request(version), path, value));
        expect(typeof parsed.ok).toBe("boolean");
      },
    ),
  );
  fc.assert(fc.property(anything, (body) => !parsePaymentRequest(body).ok));
});

test("inherited members are not read", () => {
  const inherited = Object.create({ paymentPayload: {}, paymentRequirements: {} });
  expect(parsePaymentRequest(inherited)).toMatchObject({ ok: false, invalid: { reason: "invalid_payload" } });
});

test("what goes on behind a fault meets first the one at which the parser stops", () => {
  let several = 0;
  fc.assert(
    fc.property(generatedBodies(), (body) => {
      const faults: Invalid[] = [];
      const request = createRequestReader(takenMethods)(body, builtInNetworks, (fault) => faults.push(fault));
      const parsed = parseTakenRequest(body);
      expect(faults[0]).toEqual(parsed.ok ? undefined : parsed.invalid);
      if (parsed.ok) expect(request).toEqual(parsed.request);
      if (faults.length > 1) several++;
    }),
    { numRuns: 1_000 },
  );
  expect(several).toBeGreaterThan(100);
});
