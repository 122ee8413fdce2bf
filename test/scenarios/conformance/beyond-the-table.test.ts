import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askNode } from "../../../src/chain/rpc/calls.ts";
import { writeRequest } from "../../../src/fixtures/cases/write-request.ts";
import type { Difference, FixtureRequest } from "../../../src/fixtures/engine/answer.ts";
import { createFixtureEngine } from "../../../src/fixtures/engine/engine.ts";
import type { ScenarioEnvironment } from "../../../src/fixtures/engine/scenario-environment.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { compareExactly } from "../../../src/judge/conformance/compare.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import { askNextApproval, askNextTransaction } from "../../../src/methods/on-chain/payer-state.ts";
import { type TestKeyName, testKeys } from "../../../src/payer/test-keys.ts";
import type { TestPayerName } from "../../../src/payer/test-payers.ts";
import { create2Deployer } from "../../../src/protocol/create2.ts";
import type { Address } from "../../../src/protocol/hex.ts";
import type { Operation } from "../../../src/protocol/problems.ts";
import { cases, combination, combineCases } from "../../support/conformance/combined-cases.ts";
import { loosen } from "../../support/conformance/loosen.ts";
import { runningChain } from "../../support/running-chain.ts";
import { startTestHarness } from "../../support/service.ts";

/* The same requests to the fixtures and to the service, beyond those of the table: the answers are the same. */

const engine = createFixtureEngine({ networks: ["base"] });
let harness: RunningHarness;
let environment: ScenarioEnvironment;
let origin: string;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"] });
  ({ origin } = new URL(harness.description.facilitator.url));
  const now = async () => (await harness.chains.base?.now()) ?? 0n;
  const { rpcUrl, asset } = runningChain(harness, "base");
  const nextApproval = (payer: Address) => askNextApproval(askNode(rpcUrl), { asset: asset.address, payer });
  const nextTransaction = (payer: Address) => askNextTransaction(askNode(rpcUrl), payer);
  environment = { ...engine.environment, now, nextApproval, nextTransaction };
});
afterAll(() => harness?.close());

/** Where the service answers otherwise than the fixtures. */
async function compareBoth(request: FixtureRequest): Promise<readonly Difference[]> {
  const expected = loosen(await engine.reply(request));
  return compareExactly(expected, await sendRequest(origin, request));
}

const verifyV1 = { operation: "verify" as const, x402Version: 1 as const };

/** Once a signature is taken away there is nothing of it left to change. */
const emptyWithHighS = {
  ...verifyV1,
  names: [
    "invalid_exact_evm_payload_signature.empty_signature",
    "invalid_exact_evm_payload_signature.high_s",
  ],
};

/** The message names the account of a key that is no test payer's: with its checksum, in both. */
const changedByBlacklisted = {
  ...verifyV1,
  names: [
    "invalid_transaction_state.payer_blacklisted",
    "invalid_exact_evm_payload_signature.changed_after_signing",
  ],
};

/** Payers with code have a part of the gas budget of their own, which the message says. */
const withCodeOverBudget = {
  ...{ operation: "settle" as const, x402Version: 2 as const },
  names: ["success.permit2_delegated", "gas_budget.used_up"],
};

let count = 0;

// The table has one wrong thing to a row, and says nothing of the order in which they are looked at.
test("what has several things wrong is answered as the service answers it", async () => {
  await fc.assert(
    fc.asyncProperty(combination, async ({ operation, x402Version, names }) => {
      const spec = combineCases(names, { environment, operation });
      const at = { operation, x402Version, label: `combination ${++count}` };
      const request = await writeRequest(environment, at, spec);
      expect(await compareBoth(request)).toEqual([]);
    }),
    { numRuns: 150, examples: [[emptyWithHighS], [changedByBlacklisted], [withCodeOverBudget]] },
  );
}, 60_000);

/** One approval is used up; the next one is wrong, and its answer names the payer's next nonce. */
const usedUp = {
  approval: ["success.permit2_sponsored", { approval: { nonce: 0n } }],
  transaction: ["success.permit2_brought", { approvalTransaction: { nonce: 0 } }],
} as const;

test.each(Object.entries(usedUp))(
  "after one %s the payer's next nonce is the service's",
  async (_, [name, wrong]) => {
    const spec = cases.get(name)?.payment;
    if (typeof spec !== "function") throw new Error(`${name} is another case`);
    const at = { operation: "settle" as const, x402Version: 2 as const };
    const payment = spec({ environment, operation: "settle" });
    // More than is left of the first approval.
    for (const terms of [{}, { ...wrong, amount: 20_000n }]) {
      const request = await writeRequest(
        environment,
        { ...at, label: `used up ${++count}` },
        { ...payment, ...terms },
      );
      expect(await compareBoth(request)).toEqual([]);
    }
  },
);

/** By payer and amount: signatures that say that they are of a wallet which a factory deploys (ERC-6492), and which it does not. */
const wrapped: readonly (readonly [TestPayerName, bigint])[] = [
  ...(["funded", "empty", "smartWallet", "fickle", "gasBurner", "delegated", "hijacked"] as const),
  ...(["blacklisted", "undeployedWallet"] as const),
].flatMap((payer) => [10_000n, 10n ** 15n].map((amount) => [payer, amount] as const));

test.each(wrapped)(
  "a wallet of %s that its factory does not deploy, and %s asked of it, is answered as the service does",
  async (payer, amount) => {
    const at = { ...verifyV1, label: `wrapped ${++count}` };
    const request = await writeRequest(environment, at, { payer, amount, factory: create2Deployer });
    expect(await compareBoth(request)).toEqual([]);
  },
);

const step = fc.record({
  operation: fc.constantFrom<Operation>("verify", "settle", "settle"),
  payment: fc.nat({ max: 1 }),
  key: fc.constantFrom<TestKeyName>("local", "local", "rival", "verifyOnly", "noRecipient"),
  idempotencyKey: fc.constantFrom(undefined, undefined, "a", "b"),
});

test("what is asked again and again is answered as the service answers it", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
      const run = `sequence ${++count}`;
      const payments = await Promise.all(
        ([1, 2] as const).map((x402Version) =>
          writeRequest(
            environment,
            { operation: "settle", x402Version, label: `${run}, ${x402Version}` },
            {},
          ),
        ),
      );
      for (const { operation, payment, key, idempotencyKey } of steps) {
        const request = payments[payment];
        if (request === undefined) throw new Error(`there is no payment ${payment}`);
        const headers = {
          ...request.headers,
          authorization: testKeys[key].apiKey,
          ...(idempotencyKey !== undefined && {
            "idempotency-key": `${run} ${idempotencyKey}`.replaceAll(" ", "-"),
          }),
        };
        expect(await compareBoth({ ...request, path: `/v1/${operation}`, headers })).toEqual([]);
      }
    }),
    { numRuns: 15 },
  );
}, 60_000);

test("what is not a payment is answered as the service answers it", async () => {
  const local = { authorization: testKeys.local.apiKey };
  const settlements: string[] = [];
  for (const key of ["local", "local", "rival"] as const) {
    const at = { operation: "settle", x402Version: 1, label: `settled ${++count}` } as const;
    const request = await writeRequest(environment, at, { key });
    await engine.reply(request);
    const answer = await sendRequest(origin, request);
    settlements.push(answer.kind === "json" ? `${answer.headers.location}` : answer.kind);
  }
  const [first = "", , others = ""] = settlements;
  const get = (path: string, headers: Record<string, string> = local) => ({ method: "GET", path, headers });
  const requests: FixtureRequest[] = [
    get("/v1/supported", {}),
    get("/v1/supported/"),
    get(first),
    get(`${first}/`),
    get(`${first}?a=b`),
    get(first, {}),
    get(first, { authorization: testKeys.verifyOnly.apiKey }),
    get(others),
    get("/v1/settlements/0x12"),
    get(`/v1/settlements/0x${"12".repeat(32)}`),
    get("/v1/settlements?limit=2"),
    get("/v1/settlements", { authorization: testKeys.rival.apiKey }),
    get("/v1/settlements", {}),
    get("/v1/settlements", { authorization: testKeys.revoked.apiKey }),
    get("/v1/settlements?limit=0"),
    get("/v1/settlements?limit=ten&state=odd&network=mars&payer=me&from=then&cursor=x"),
    get("/v1/settlements?state=failed"),
    get("/v1/settlements?network=polygon"),
    get("/v1/verify"),
    get("/v1/nothing"),
    get("/v1/setle"),
    get("/v2/settle"),
    { method: "POST", path: "/v1/supported", headers: local },
    { method: "DELETE", path: first, headers: local },
    { method: "PUT", path: "/v1/settle", headers: local },
    {
      method: "POST",
      path: "/v1/verify?now",
      headers: { ...local, "content-type": "application/json" },
      body: "{}",
    },
    {
      method: "POST",
      path: "/v1/verify/",
      headers: { ...local, "content-type": "application/json" },
      body: "{}",
    },
    {
      method: "POST",
      path: "/v1//verify",
      headers: { ...local, "content-type": "application/json" },
      body: "{}",
    },
    {
      method: "POST",
      path: "/V1/verify",
      headers: { ...local, "content-type": "application/json" },
      body: "{}",
    },
  ];
  const found = [];
  for (const request of requests) {
    const differences = await compareBoth(request);
    if (differences.length > 0) found.push({ request: `${request.method} ${request.path}`, differences });
  }
  expect(found).toEqual([]);
});

test("odd headers and bodies are answered as the service answers them", async () => {
  const { apiKey } = testKeys.local;
  const at = { operation: "verify", x402Version: 1, label: `odd ${++count}` } as const;
  const { body = "", headers: usual } = await writeRequest(environment, at, {});
  const withHeaders = (headers: Record<string, string>) => ({ body, headers: { ...usual, ...headers } });
  const withBody = (text: string) => ({ body: text, headers: usual });
  const odd: readonly { body: string; headers: Readonly<Record<string, string>> }[] = [
    ...[
      "APPLICATION/JSON",
      "application/json;",
      "application/json; charset=latin1",
      "application/json ; charset=utf-8",
      "application/jsonp",
      "text/json",
      "application/problem+json",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "nonsense",
      "",
    ].map((type) => withHeaders({ "content-type": type })),
    ...[
      `bearer ${apiKey}`,
      `BEARER   ${apiKey}`,
      `Bearer${apiKey}`,
      `${apiKey} x`,
      `Bearer Bearer ${apiKey}`,
      "Bearer",
      "Bearer ",
      "",
      apiKey.toUpperCase(),
      apiKey.slice(0, -1),
      "x4k_local",
      "x4k_local_",
      "x".repeat(5_000),
    ].map((authorization) => withHeaders({ authorization })),
    ...["null", "5", '"text"', "true", " ", "\n", "\ufeff{}", "{}x", "{'a':1}", "[[[[]]]]", "NaN", ""].map(
      withBody,
    ),
    withBody(`${"[".repeat(10_000)}${"]".repeat(10_000)}`),
    withBody(`\ufeff${body}`),
    withBody(` ${body}\n`),
    withBody(body.replace("{", '{"constructor":{"prototype":{}},')),
    withBody(body.replace("{", '{"constructor":5,')),
    withBody(body.replace("{", '{"a":{"b":[{"__proto__":null}]},')),
    withBody(body.replace("{", '{"x402Version":7,')),
    withBody(body.replace("{", '{"paymentPayload":5,')),
    withBody(body.replace('"payload"', '"payload":5,"payload"')),
    withBody(JSON.stringify({ ...JSON.parse(body), more: "x".repeat(31_000) })),
    withBody(JSON.stringify({ ...JSON.parse(body), more: "\u00e4".repeat(15_500) })),
    withBody(JSON.stringify({ ...JSON.parse(body), more: "\u00e4".repeat(31_000) })),
  ];
  const keys = ["", "a", "a".repeat(255), "a".repeat(256), "a b", "!~", "a,b", "\u00e4"];
  const requests = [
    ...odd.map((one) => ({ ...one, path: "/v1/verify" })),
    ...odd.map((one) => ({ ...one, path: "/v1/settle", body: one.body.replaceAll("USD Coin", "odd") })),
    ...keys.map((key) => ({
      ...withBody("{}"),
      path: "/v1/settle",
      headers: { ...usual, "idempotency-key": key },
    })),
  ];
  const found = [];
  for (const request of requests) {
    const differences = await compareBoth({ method: "POST", ...request });
    if (differences.length > 0) found.push({ ...request, body: request.body.slice(0, 80), differences });
  }
  expect(found).toEqual([]);
});
