import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeRequest } from "../../../src/fixtures/cases/write-request.ts";
import type { FixtureRequest } from "../../../src/fixtures/engine/answer.ts";
import { type PaymentTerms, signPayment } from "../../../src/fixtures/engine/sign-payment.ts";
import { type MockServer, startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { compareExactly } from "../../../src/judge/conformance/compare.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import { localTokenNames } from "../../../src/payer/local-chains.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { expectedOf } from "../../support/conformance/expected-of.ts";
import { startTestHarness } from "../../support/service.ts";

/*
 * Requests drawn at random to the mock server and to the service, over HTTP: other methods, odd paths, odd bodies. Both
 * give the same answer. EQUAL_RUNS=100000 draws more of them than `npm test` does.
 */

const numRuns = Number(process.env.EQUAL_RUNS ?? 300);

/** Both where payments go to the contract alone, and where they may go anywhere. */
const policies = ["contract", "any"] as const;

type Pair = {
  harness: RunningHarness;
  mock: MockServer;
  /** One in each version, by each way to pay, and in each kind of token. */
  bodies: readonly string[];
  /** That of version 2 by EIP-3009. */
  second: string;
};

const pairs: Pair[] = [];
beforeAll(async () => {
  for (const payTo of policies) pairs.push(await startPair(payTo));
});
afterAll(async () => {
  for (const { mock, harness } of pairs) {
    await mock.close();
    await harness.close();
  }
});

async function startPair(payTo: (typeof policies)[number]): Promise<Pair> {
  const harness = await startTestHarness({ networks: ["base"], payTo });
  const mock = await startMockServer({ networks: ["base"], payTo });
  const now = async () => (await harness.chains.base?.now()) ?? 0n;
  const at = { operation: "verify", x402Version: 1, label: "equal" } as const;
  const environment = { ...mock.environment, now };
  const { body: first = "" } = await writeRequest(environment, at, { valid: { until: 80_000 } });
  const sign = async (terms: PaymentTerms) =>
    JSON.stringify(await signPayment(environment, { validForSeconds: 80_000, ...terms }));
  const second = await sign({});
  const others: readonly PaymentTerms[] = [
    ...[{ method: "permit2" } as const, { scheme: "upto" } as const],
    ...(["unapproved", "empty", "blacklisted", "smartWallet"] as const).flatMap((payer) => [
      { method: "permit2", payer } as const,
      { scheme: "upto", max: 20_000n, payer } as const,
    ]),
    ...localTokenNames.flatMap((asset) => [{ asset }, { asset, scheme: "upto" } as const]),
  ];
  const bodies = [first, first, second, second, ...(await Promise.all(others.map(sign)))];
  return { harness, mock, bodies, second };
}

const base = fc.constantFrom("", "/v1", "/v1/", "/V1", "/v2", "//", "/%76%31");
const name = fc.constantFrom(
  ...["verify", "settle", "supported", "settlements", "health", "livez", "readyz", "nothing"],
  ...["discovery/resources", "discovery/search", "discovery"],
  ...["%73ettle", "settle%2F", "%zz", "%E0%A4%A", "settlements/0x12", `settlements/0x${"12".repeat(32)}`],
  ...[`settlements/${"a".repeat(100)}`, `settlements/${"a".repeat(101)}`, "settlements/%zz"],
  ...["a".repeat(120), "\u00e4".normalize("NFC").replace(/./, "%C3%A4")],
);
const path = fc
  .tuple(base, name, fc.constantFrom("", "/", "//", "?", "?a=b", "?limit=0", "/?x", "%20"))
  .map(([start, middle, end]) => `${start}/${middle}${end}`);
const method = fc.constantFrom(
  "GET",
  "HEAD",
  "POST",
  "POST",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "TRACE",
);
const { local, rival, revoked } = testKeys;
const authorization = fc.constantFrom(
  ...[undefined, local.apiKey, local.apiKey, `Bearer ${local.apiKey}`, `bearer  ${rival.apiKey}`],
  ...[revoked.apiKey, "nonsense", "Basic eDp5"],
);
const contentType = fc.constantFrom(
  ...["application/json", "application/json", "application/json;charset=utf-8", "text/plain", "nonsense"],
  undefined,
);
/** The payment in version 2, with an extension `payment-identifier`. */
const named = (extension: string, second: string) =>
  second.replace('"paymentPayload":{', `"paymentPayload":{"extensions":{"payment-identifier":${extension}},`);
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const text = fc.oneof(
  fc.constantFrom<(payment: string, second: string) => string>(
    (payment) => payment,
    (payment) => payment.replace("{", `{"deep":${nested(5_000)},`),
    (payment) => payment.replace('"payload":{', `"payload":{"deep":${nested(9_000)},`),
    (payment) => payment.slice(0, -1),
    (payment) => payment.replace("{", '{"__proto__":1,'),
    (payment) => payment.replaceAll('"base"', '"polygon"'),
    (_, second) => named('{ "info": { "id": "order-0000000000000402", "required": true } }', second),
    (_, second) => named('{ "info": { "required": true } }', second),
    (_, second) => named('{ "info": { "required": false } }', second),
    (_, second) => named('{ "info": { "id": 402 } }', second),
    (_, second) => named('{ "id": "order-0000000000000402" }', second),
    (_, second) => named("[]", second),
    (payment) => payment.replaceAll('"exact"', "7"),
    () => nested(10_000),
    () => "",
    () => `"${"x".repeat(40_000)}"`,
  ),
  fc.json().map((json) => () => json),
);
const idempotencyKey = fc.constantFrom(undefined, undefined, "a b", "fine");

const stranger = "0x00000000000000000000000000000000DeaDBeef";
/** Another address to pay to, in one of its places or in all of them. */
const payTo = fc.constantFrom<(payment: string) => string>(
  ...Array.from({ length: 6 }, () => (payment: string) => payment),
  (payment) => payment.replace(/"payTo":"0x\w{40}"/, `"payTo":"${stranger}"`),
  (payment) => payment.replaceAll(/"(payTo|to)":"0x\w{40}"/g, `"$1":"${stranger}"`),
  (payment) => payment.replace(/"payTo":"0x\w{40}",?/, ""),
);

const request = fc.record({
  way: fc.nat(1_000),
  method,
  path,
  authorization,
  contentType,
  text,
  idempotencyKey,
  payTo,
});

function write(
  { method, path, ...drawn }: typeof request extends fc.Arbitrary<infer R> ? R : never,
  { bodies, second }: Pair,
): FixtureRequest {
  const written = drawn.payTo(drawn.text(bodies[drawn.way % bodies.length] ?? second, second));
  const hasBody = method !== "GET" && method !== "HEAD" && method !== "TRACE";
  const headers = Object.entries({
    authorization: drawn.authorization,
    "content-type": hasBody ? drawn.contentType : undefined,
    // Not every method has it by itself.
    "content-length": hasBody ? `${Buffer.byteLength(written)}` : undefined,
    // A key is kept by what settles with it, and these are verified.
    "idempotency-key": /verify/.test(path) ? drawn.idempotencyKey : undefined,
  }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  return {
    ...{ method, path, headers: Object.fromEntries(headers) },
    ...(hasBody && { body: written }),
  };
}

test(`${numRuns} requests drawn at random are answered alike by the mock and the service`, async () => {
  const found: object[] = [];
  for (const [index, drawn] of fc.sample(request, numRuns).entries()) {
    const pair = pairs[index % pairs.length];
    if (pair === undefined) throw new Error("nothing was started");
    const sent = write(drawn, pair);
    const mockOrigin = new URL(pair.mock.url).origin;
    const { origin } = new URL(pair.harness.description.facilitator.url);
    const [mocked, actual] = await Promise.all([sendRequest(mockOrigin, sent), sendRequest(origin, sent)]);
    const differences = compareExactly(expectedOf(mocked), actual);
    if (differences.length > 0) found.push({ ...sent, body: sent.body?.slice(0, 60), differences });
    if (found.length > 9) break;
  }
  expect(found).toEqual([]);
}, 3_600_000);
