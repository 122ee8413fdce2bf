import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { generatedBodies } from "../../test/support/generated-bodies.ts";
import { readToEnd } from "../../test/support/read-part.ts";
import { authorizationOf } from "../methods/exact-eip3009/eip3009-method.ts";
import { exactPayloadSchema } from "../methods/exact-eip3009/eip3009-schemas.ts";
import { parsePaymentRequest } from "../methods/methods.ts";
import type { Permit } from "../methods/permit2/permit.ts";
import { permitOf } from "../methods/permit2/permit2-payload.ts";
import { createPermitPayloadSchema } from "../methods/permit2/permit2-schemas.ts";
import { isAddress, isBytes32, sameAddress } from "./hex.ts";
import { address, bytes32, signature, uint256String } from "./primitives.ts";
import {
  faults,
  type Part,
  readBytes32,
  readSeconds,
  readSignature,
  readText,
  readUint256,
  readWireAddress,
} from "./wire-values.ts";

/*
 * What is read by hand against schemas: the same values, and the same first sentence about what is wrong.
 */

const seconds = z.int(faults.seconds).nonnegative(faults.negative);

const values = fc.oneof(
  fc.constantFrom<unknown>(
    ...["0", "1", "01", "-1", "1.0", " 1", "", (2n ** 256n).toString(), (2n ** 256n - 1n).toString()],
    ...["9".repeat(78), "9".repeat(79), `0x${"aB".repeat(20)}`, `0x${"aB".repeat(32)}`, "0x", "0xabc"],
    ...[`0x${"ab".repeat(4_096)}`, `0x${"ab".repeat(4_097)}`, `0x${"zz".repeat(5_000)}`, "0X00"],
    ...[0, -0, 1, -1, 1.5, -1.5, 2 ** 53, -(2 ** 53), 1e300, Number.POSITIVE_INFINITY],
    ...[null, undefined, true, [], {}, [1]],
  ),
  fc.jsonValue(),
  fc.string(),
);

test.each<[string, z.ZodType, (part: Part, name: string) => unknown]>([
  ["a text", z.string(faults.text), readText],
  ["an amount", uint256String, readUint256],
  ["an address", address, readWireAddress],
  ["32 bytes", bytes32, readBytes32],
  ["a signature", signature, readSignature],
  ["seconds", seconds, readSeconds],
])("%s is read by hand as by its schema", (_, schema, read) => {
  fc.assert(
    fc.property(values, (value) => {
      const outcome = outcomeOf({ member: value }, (part) => read(part, "member"));
      expect(outcome).toEqual(bySchema(schema, value, "here.member"));
    }),
    { numRuns: 1_000 },
  );
});

test("addresses and 32 bytes are recognized as the schema does", () => {
  fc.assert(
    fc.property(values, (value) => {
      expect(isAddress(value)).toBe(address.safeParse(value).success);
      expect(isBytes32(value)).toBe(bytes32.safeParse(value).success);
    }),
  );
});

test.each([null, [], "text", 1, true, undefined])("%j is refused with the words of the schema", (value) => {
  expect(outcomeOf(value, () => {})).toEqual(bySchema(z.object({}, faults.object), value, "here"));
});

// Public servers write null for what they do not know.
const text = z.string(faults.text).nullish();
const requirementsV1 = z.object({
  maxAmountRequired: uint256String.optional(),
  amount: uint256String.optional(),
  payTo: address.optional(),
  recipient: address.optional(),
  asset: address,
  resource: text,
  description: text,
  mimeType: text,
  maxTimeoutSeconds: seconds.optional(),
});
const requirementsV2 = z.object({
  amount: uint256String,
  asset: address,
  payTo: address,
  maxTimeoutSeconds: seconds.optional(),
});

/** A part of a body; JSON as it comes has no `undefined`. */
function member(value: unknown, ...[name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return value;
  return Object.hasOwn(Object(value), name) ? member(Reflect.get(Object(value), name), ...rest) : undefined;
}

test("random bodies are refused with the same sentences as by the schemas", { timeout: 30_000 }, () => {
  let accepted = 0;
  let malformed = 0;
  fc.assert(
    fc.property(generatedBodies(), (drawn) => {
      const body: unknown = JSON.parse(JSON.stringify(drawn));
      const read = parsePaymentRequest(body);
      const isV2 = member(body, "paymentPayload", "x402Version") === 2;
      const given = member(body, "paymentPayload", "payload");
      const isUpto = isV2 && member(body, "paymentPayload", "accepted", "scheme") === "upto";
      const isPermit = isUpto || (isV2 && member(given, "permit2Authorization") !== undefined);
      const schema: z.ZodType = isPermit
        ? createPermitPayloadSchema({ hasFacilitator: isUpto })
        : exactPayloadSchema;
      const payload = bySchema(schema, given, "paymentPayload.payload");
      const requirements = bySchema<z.infer<typeof requirementsV1>>(
        isV2 ? requirementsV2 : requirementsV1,
        member(body, "paymentRequirements"),
        "paymentRequirements",
      );
      if (read.ok) {
        accepted++;
        const { payment } = read.request;
        const { signature } = payment;
        const signed = isPermit
          ? { permit2Authorization: asSent(permitOf(payment)) }
          : { authorization: authorizationOf(payment) };
        expect(payload).toEqual({ value: { signature, ...signed } });
        const { value } = requirements;
        expect(read.request.requirements).toMatchObject({
          amount: value?.maxAmountRequired ?? value?.amount,
          asset: value?.asset,
          payTo: value?.payTo ?? value?.recipient,
        });
        return;
      }
      // What is wrong with scheme, network or the whole comes first, and the requirements before the payload.
      const { message } = read.invalid;
      const path = /^(paymentRequirements|paymentPayload\.payload)[\w.]*: /.exec(message)?.[1];
      if (path === undefined) return;
      malformed++;
      expect(path === "paymentRequirements" ? requirements : payload).toEqual({ problem: message });
      if (path !== "paymentRequirements") expect(requirements.problem).toBeUndefined();
    }),
    { numRuns: 1_500 },
  );
  expect(accepted).toBeGreaterThan(100);
  expect(malformed).toBeGreaterThan(100);
});

test("requirements that a schema accepts are refused only where their two forms disagree or lack something", {
  timeout: 30_000,
}, () => {
  fc.assert(
    fc.property(generatedBodies(), (drawn) => {
      const body: unknown = JSON.parse(JSON.stringify(drawn));
      const read = parsePaymentRequest(body);
      if (read.ok || member(body, "paymentPayload", "x402Version") !== 1) return;
      if (!/ must be equal$|needs maxAmountRequired|payTo must be the facil/.test(read.invalid.message))
        return;
      const { value } = bySchema(requirementsV1, member(body, "paymentRequirements"), "paymentRequirements");
      const { maxAmountRequired: most, amount, payTo, recipient } = value ?? {};
      const differ =
        (most !== undefined && amount !== undefined && most !== amount) ||
        (payTo !== undefined && recipient !== undefined && !sameAddress(payTo, recipient));
      const lacks =
        (most === undefined && amount === undefined) || (amount === undefined && payTo === undefined);
      expect(differ || lacks).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

/** A permit with its members in their places, as in a payload. */
function asSent({ token, amount, to, validAfter, facilitator, ...rest }: Permit) {
  const witness = { to, validAfter, ...(facilitator !== undefined && { facilitator }) };
  return { ...rest, permitted: { token, amount }, witness };
}

type Outcome<T> = { value: T; problem?: undefined } | { value?: undefined; problem: string };

function outcomeOf<T>(given: unknown, read: (part: Part) => T): Outcome<T> {
  const { value, malformed } = readToEnd(given, "here", read);
  const [problem] = malformed;
  return problem === undefined ? { value } : { problem };
}

function bySchema<T>(schema: z.ZodType<T>, value: unknown, path: string): Outcome<T> {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return { value: data };
  const [issue] = error.issues;
  return { problem: `${[path, ...(issue?.path ?? [])].join(".")}: ${issue?.message}` };
}
