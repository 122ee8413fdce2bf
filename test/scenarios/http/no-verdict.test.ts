import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { type Answer, post, signedRequest, startTestHarness } from "../../support/service.ts";

/*
 * "No verdict": 4xx and 5xx, problem details that public clients can read, and nothing broadcast. Beside the rows of the scenario
 * table, which conformance/service.test.ts sends.
 */

let harness: RunningHarness;
const keys = { verifyOnly: "", settleOnly: "" };

beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base", "polygon"] });
  const { organizations } = harness;
  keys.verifyOnly = (await organizations.createKey("org_local", { scopes: ["verify"] })).key;
  keys.settleOnly = (await organizations.createKey("org_local", { scopes: ["settle"] })).key;
});
afterAll(() => harness.close());

const operations = ["verify", "settle"] as const;
const x402Members = {
  verify: { isValid: false, invalidReason: "unexpected_verify_error" },
  settle: { success: false, errorReason: "unexpected_settle_error", transaction: "" },
};

/** Posts bytes as they are. */
function postRaw(operation: string, body: string, headers: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${harness.description.facilitator.url}/${operation}`,
      { method: "POST", headers },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("end", () => {
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: JSON.parse(Buffer.concat(chunks).toString()),
          });
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const json = { authorization: localOrganization.apiKey, "content-type": "application/json" };

const noHeader =
  "There is no Authorization header; send the API key in it, as it is or after the word Bearer";
const notSet = (what: string) =>
  `The Authorization header has ${what}: the variable that the caller takes it from is not set`;
const notAccepted = "The API key in the Authorization header is not known here, was revoked or has expired";

describe.each(operations)("%s", (operation) => {
  test.each([
    ["no key", undefined, noHeader],
    ["an empty key", "", notSet("no key")],
    ["no key after Bearer", "Bearer ", notSet("no key")],
    ["a variable that is not set", "Bearer undefined", notSet('"undefined" in the place of a key')],
    ["nonsense", "nonsense", notAccepted],
    ["the wrong secret", `x4k_local_${"1".repeat(64)}`, notAccepted],
    ["a very long key", `x4k_local_${"0".repeat(5_000)}`, notAccepted],
  ])("with %s is 401, before the body is read", async (_name, key, detail) => {
    const answer = await postRaw(operation, "not json", {
      "content-type": "application/json",
      ...(key !== undefined && { authorization: key }),
    });
    expect(answer.status).toBe(401);
    expect(answer.headers).toMatchObject({
      "content-type": expect.stringContaining("application/problem+json"),
      "www-authenticate": "Bearer",
    });
    expect({ ...answer.body, instance: "" }).toEqual({
      type: "urn:x402-facilitator-kit:problem:unauthorized",
      title: "API key missing or not accepted",
      status: 401,
      detail,
      instance: "",
      network: "",
      ...x402Members[operation],
      [operation === "verify" ? "invalidMessage" : "errorMessage"]: expect.any(String),
      situation: operation === "verify" ? "verify_refused" : "request_refused",
      nextAction: "fix_request",
      paymentState: operation === "verify" ? "not_taken" : "unknown",
    });
  });

  test("takes the key after Bearer as well", async () => {
    const body = await signedRequest(harness);
    const answer = await post(harness, operation, body, {
      authorization: `Bearer ${localOrganization.apiKey}`,
    });
    expect(answer.status).toBe(200);
  });

  test("with a key that lacks the scope is 403, after what is wrong with the payment itself", async () => {
    const key = operation === "verify" ? keys.settleOnly : keys.verifyOnly;
    const good = await post(harness, operation, await signedRequest(harness), { authorization: key });
    expect(good).toMatchObject({ status: 403, body: { ...x402Members[operation], network: "base" } });
    const bad = await post(harness, operation, {}, { authorization: key });
    expect(bad).toMatchObject({ status: 200 });
  });

  test.each(["{", `{"paymentPayload": ${"[".repeat(10_000)}`, '{"constructor": {"prototype": {"x": 1}}}'])(
    "of bad body %# is 400",
    async (body) => {
      const answer = await postRaw(operation, body, json);
      expect(answer).toMatchObject({ status: 400, body: { status: 400, ...x402Members[operation] } });
      expect(answer.headers["x-request-id"]).toBeTypeOf("string");
    },
  );

  test.each([
    ['{"paymentPayload":\n  x4k_secret}', "The body is not JSON from line 2, column 3 on"],
    ['{"__proto__": {"x": 1}}', "The body has a member __proto__ or constructor.prototype, which is refused"],
    ["", "The body is empty; send the payment as JSON"],
  ])("of the body %j says why, and where, without quoting it", async (body, detail) => {
    expect((await postRaw(operation, body, json)).body).toMatchObject({ status: 400, detail });
  });

  test("without a body is 400", async () => {
    const answer = await postRaw(operation, "", { authorization: localOrganization.apiKey });
    expect(answer).toMatchObject({ status: 400, body: x402Members[operation] });
  });

  test.each(["application/xml", "multipart/form-data; boundary=x"])("of %s is 415", async (type) => {
    const answer = await postRaw(operation, "{}", { ...json, "content-type": type });
    expect(answer).toMatchObject({ status: 415, body: x402Members[operation] });
  });

  test.each(["gzip", "br"])("that %s has compressed is 415, and says so", async (encoding) => {
    const answer = await postRaw(operation, "\u001f\u008b\u0008", { ...json, "content-encoding": encoding });
    expect(answer).toMatchObject({ status: 415, body: x402Members[operation] });
    expect(answer.body.detail).toBe(
      `Send the body as plain JSON, without content-encoding: bodies that are compressed (${encoding}) are not read`,
    );
  });

  test.each([
    ["null", "null"],
    ["a string", '"paymentPayload"'],
    ["a number", "402"],
    ["an empty object", "{}"],
  ])("of %s is a verdict: the payload is malformed", async (_name, body) => {
    const answer = await postRaw(operation, body, json);
    expect(answer.status).toBe(200);
    expect(answer.body.invalidReason ?? answer.body.errorReason).toMatch(/^invalid_(payload|x402_version)$/);
    expect(answer.body.network).toBe("");
  });
});

describe("an organization with a minimum amount", () => {
  test("verify and settle say that a smaller payment asks for too little, and take one of that amount", async () => {
    const { organizations } = harness;
    await organizations.create({ id: "org_large", name: "Large payments only" });
    await organizations.setRecipient("org_large", "base", harnessAccounts.recipient.address);
    await organizations.setLimits("org_large", "base", { minimumAmount: 20_000n });
    const { key } = await organizations.createKey("org_large", { scopes: ["verify", "settle"] });
    const headers = { authorization: key };

    const small = await signedRequest(harness);
    expect((await post(harness, "verify", small, headers)).body).toMatchObject({
      isValid: false,
      invalidReason: "invalid_payment_requirements",
      invalidMessage: "The amount of 10000 is below the organization's minimum of 20000",
    });
    expect((await post(harness, "settle", small, headers)).body).toMatchObject({
      success: false,
      errorReason: "invalid_payment_requirements",
    });
    const enough = await signedRequest(harness, { amount: 20_000n });
    expect((await post(harness, "settle", enough, headers)).body).toMatchObject({ success: true });
  });
});

describe("the rest of the surface", () => {
  const get = async (path: string) => {
    const response = await fetch(new URL(path, harness.description.facilitator.url));
    return { status: response.status, text: await response.text(), headers: response.headers };
  };

  test("supported lists both versions of every configured network, and the operator, without a key", async () => {
    const { status, text } = await get("/v1/supported");
    expect(status).toBe(200);
    const byPermit2 = { assetTransferMethod: "permit2" };
    const upto = { ...byPermit2, facilitatorAddress: harness.description.networks.base?.facilitatorContract };
    expect(JSON.parse(text)).toEqual({
      kinds: [
        { x402Version: 1, scheme: "exact", network: "base" },
        { x402Version: 1, scheme: "exact", network: "polygon" },
        ...["eip155:8453", "eip155:137"].flatMap((network) => [
          { x402Version: 2, scheme: "exact", network },
          { x402Version: 2, scheme: "exact", network, extra: byPermit2 },
          { x402Version: 2, scheme: "upto", network, extra: upto },
        ]),
      ],
      extensions: [
        "payment-identifier",
        "builder-code",
        "eip2612GasSponsoring",
        "erc20ApprovalGasSponsoring",
      ],
      signers: { "eip155:*": [harnessAccounts.operator.address] },
    });
  });

  test("livez and readyz say that all is well", async () => {
    expect((await get("/livez")).status).toBe(200);
    expect(JSON.parse((await get("/readyz")).text)).toEqual({
      status: "ready",
      networks: { base: { ready: true, detail: "ok" }, polygon: { ready: true, detail: "ok" } },
    });
  });

  test("the OpenAPI document describes every route of /v1 and of health, and its page loads nothing from elsewhere", async () => {
    const document = JSON.parse((await get("/openapi.json")).text);
    expect(document.openapi).toBe("3.1.0");
    // Those of the harness are described beside them.
    const paths = Object.keys(document.paths).filter((path) => !/^\/(harness|__payment)/.test(path));
    expect(paths.sort()).toEqual(routesOf(harness));
    for (const [, reference] of JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)) {
      const [, ...path] = String(reference).split("/");
      expect(
        path.reduce((place, key) => place?.[key], document),
        reference,
      ).toBeTypeOf("object");
    }
    const page = await get("/docs/");
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'self'");
  });

  test("a path that does not exist names those that do", async () => {
    const { status, text } = await get("/v2/verify");
    expect(status).toBe(404);
    expect(JSON.parse(text).detail).toContain("POST /v1/verify");
  });

  test.each([
    ["PUT", "/v1/verify", "POST"],
    ["GET", "/v1/settle?x=1", "POST"],
    ["OPTIONS", "/v1/settle/", "POST"],
    ["DELETE", `/v1/settlements/0x${"1".repeat(64)}`, "GET, HEAD"],
    ["POST", "/v1/supported", "GET, HEAD"],
    ["POST", "/livez", "GET, HEAD"],
    ["PATCH", "/readyz", "GET, HEAD"],
  ])("%s %s is 405 and says what is allowed", async (method, path, allowed) => {
    const response = await fetch(new URL(path, harness.description.facilitator.url), { method });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe(allowed);
    expect(response.headers.get("content-type")).toContain("application/problem+json");
    expect(await response.json()).toMatchObject({
      type: "urn:x402-facilitator-kit:problem:method-not-allowed",
      detail: `${method} is not allowed at ${path.split("?")[0]}; allowed: ${allowed}`,
    });
  });

  test("a settlement id that is none is 404", async () => {
    const url = new URL("/v1/settlements/..%2f..%2fetc", harness.description.facilitator.url);
    const response = await fetch(url, { headers: { authorization: localOrganization.apiKey } });
    expect(response.status).toBe(404);
  });
});

/** Fastify prints its routes as a tree whose branches go on where their parents end. */
function routesOf({ app }: RunningHarness): string[] {
  const parents: string[] = [];
  const paths = app
    .printRoutes({ commonPrefix: false })
    .split("\n")
    .flatMap((line) => {
      const [, indent = "", part = ""] = line.match(/^(.*)[├└]── (\S+) \(/) ?? [];
      const depth = indent.length / 4;
      parents.length = depth;
      parents.push(part);
      return parents.join("");
    });
  return paths
    .filter((path) => /^\/(v1\/|discovery\/|(livez|readyz|health|verify|settle|supported)$)/.test(path))
    .map((path) => path.replace(/:(\w+)/g, "{$1}"))
    .sort();
}

describe("when it could not be told", () => {
  test("an operator without gas money: settle is a 503 that does not blame the payer's funds, and nothing is claimed", async () => {
    const chain = harness.chains.base;
    const body = await signedRequest(harness);
    await chain?.setBalance(harnessAccounts.operator.address, 1n);
    const answer = await post(harness, "settle", body);
    await chain?.setBalance(harnessAccounts.operator.address, 10n ** 22n);
    expect(answer).toMatchObject({
      status: 503,
      headers: { "retry-after": "1" },
      body: { errorReason: "unexpected_settle_error", transaction: "", network: "base" },
    });
    expect((await post(harness, "settle", body)).body).toMatchObject({ success: true });
  });

  test("a node that is gone: 503 on its network alone, and no address in any answer", async () => {
    const chain = harness.chains.polygon;
    const body = await signedRequest(harness, { network: "polygon" });
    await chain?.node.stop();
    for (const operation of operations) {
      const answer = await post(harness, operation, body);
      expect(answer).toMatchObject({ status: 503, body: { ...x402Members[operation], network: "polygon" } });
      expect(JSON.stringify(answer.body)).not.toContain("127.0.0.1");
    }
    expect((await post(harness, "verify", await signedRequest(harness))).body).toMatchObject({
      isValid: true,
    });
    const readyz = async (query: string) => {
      const response = await fetch(new URL(`/readyz${query}`, harness.description.facilitator.url));
      return { status: response.status, body: await response.json() };
    };
    // The others go on: a balancer that took the instance out for one network would take out all instances.
    await expect
      .poll(() => readyz(""))
      .toEqual({
        status: 200,
        body: {
          status: "degraded",
          networks: {
            base: { ready: true, detail: "ok" },
            polygon: { ready: false, detail: expect.any(String) },
          },
        },
      });
    expect(await readyz("?network=polygon")).toMatchObject({
      status: 503,
      body: { status: "not ready", networks: { polygon: { ready: false } } },
    });
    expect(await readyz("?network=base")).toMatchObject({ status: 200, body: { status: "ready" } });
  });
});
