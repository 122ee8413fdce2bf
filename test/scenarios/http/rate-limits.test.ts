import { afterEach, describe, expect, test } from "vitest";
import type { AppOptions } from "../../../src/service/http/app.ts";
import { type JsonResponse, requestJson } from "../../../src/util/http-client.ts";
import { goodKeys, paymentBody, type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * Who sends too much is told so, in words that x402 clients understand, and costs next to nothing.
 */

let app: StubApp;
afterEach(() => app.close());

const [goodKey = "", otherKey = ""] = goodKeys;
const badKey = `x4k_bad_${"1".repeat(64)}`;
const start = async (options: Partial<AppOptions>) => {
  app = await startStubApp(options);
};
const verify = (key: string | undefined, headers: Record<string, string> = {}) =>
  requestJson(`${app.origin}/v1/verify`, {
    method: "POST",
    headers: { ...(key !== undefined && { authorization: key }), ...headers },
    body: paymentBody(),
  });
const statusesOf = (answers: readonly JsonResponse[]) => answers.map(({ status }) => status);
const times = (count: number, act: () => Promise<JsonResponse>) =>
  Promise.all(Array.from({ length: count }, act));

const slow = { burst: 3, perSecond: 0.01 };
const plenty = { burst: 1_000, perSecond: 1_000 };

describe("an API key", () => {
  test("beyond its rate gets 429 with Retry-After, as a problem that x402 clients can read", async () => {
    await start({ rateLimits: { key: slow, address: plenty } });
    expect(statusesOf(await times(3, () => verify(goodKey)))).toEqual([200, 200, 200]);
    const refused = await verify(goodKey);
    expect(refused).toMatchObject({
      status: 429,
      headers: {
        "retry-after": "100",
        "ratelimit-limit": "3",
        "ratelimit-remaining": "0",
        "ratelimit-reset": "300",
        "content-type": expect.stringContaining("application/problem+json"),
      },
      body: {
        type: "urn:x402-facilitator-kit:problem:too-many-requests",
        status: 429,
        isValid: false,
        invalidReason: "unexpected_verify_error",
        invalidMessage: "This API key sends too many requests; try again in 100 s",
      },
    });
    const settle = await requestJson(`${app.origin}/v1/settle`, {
      method: "POST",
      headers: { authorization: goodKey },
      body: paymentBody(),
    });
    expect(settle).toMatchObject({
      status: 429,
      body: { success: false, errorReason: "unexpected_settle_error", transaction: "" },
    });
    expect(app.settles).toEqual([]);
  });

  test("is told with every answer how much it has left", async () => {
    await start({ rateLimits: { key: { burst: 10, perSecond: 0.001 }, address: plenty } });
    await verify(goodKey);
    expect((await verify(goodKey)).headers).toMatchObject({
      "ratelimit-limit": "10",
      "ratelimit-remaining": "8",
    });
  });

  test("does not use up another key's share, though both come from one address", async () => {
    await start({ rateLimits: { key: slow, address: slow } });
    expect(statusesOf(await times(4, () => verify(goodKey))).sort()).toEqual([200, 200, 200, 429]);
    expect((await verify(otherKey)).status).toBe(200);
  });

  test("is never held up by its address as long as it is good", async () => {
    await start({ rateLimits: { key: plenty, address: slow } });
    for (let index = 0; index < 50; index++) expect((await verify(goodKey)).status).toBe(200);
  });
});

describe("an address without a good key", () => {
  test("beyond its rate is turned away before any key is looked at", async () => {
    await start({ rateLimits: { key: plenty, address: slow } });
    const answers = await times(100, () => verify(badKey));
    expect(statusesOf(answers).filter((status) => status === 401)).toHaveLength(3);
    expect(statusesOf(answers).filter((status) => status === 429)).toHaveLength(97);
    expect(app.authentications()).toBe(3);
  });

  test("is limited on everything it can ask for, except whether the service is well", async () => {
    await start({ rateLimits: { key: plenty, address: slow } });
    const get = async (path: string) => (await requestJson(app.origin + path)).status;
    expect([await get("/v1/supported"), await get("/nowhere"), await get("/openapi.json")]).toEqual([
      200, 404, 200,
    ]);
    expect([await get("/v1/supported"), await get("/nowhere"), await get("/docs/")]).toEqual([429, 429, 429]);
    expect([await get("/livez"), await get("/readyz")]).toEqual([200, 200]);
  });

  test("that asks for verify without a key, where that is allowed, is limited too", async () => {
    await start({ rateLimits: { key: plenty, address: slow }, anonymousVerify: true });
    const answers = await times(4, () => verify(undefined));
    expect(statusesOf(answers).sort()).toEqual([200, 200, 200, 429]);
  });

  test("cannot choose its address by a header", async () => {
    await start({ rateLimits: { key: plenty, address: slow } });
    const answers = [];
    for (let index = 0; index < 5; index++) {
      answers.push(
        await verify(badKey, { "x-forwarded-for": `192.0.2.${index}`, forwarded: "for=192.0.2.9" }),
      );
    }
    expect(statusesOf(answers)).toEqual([401, 401, 401, 429, 429]);
  });
});

describe("behind a proxy", () => {
  const through = (...addresses: readonly string[]) => ({ "x-forwarded-for": addresses.join(", ") });
  const exhaust = async (headers: Record<string, string>) => {
    const answers = await times(4, () => verify(badKey, headers));
    expect(statusesOf(answers)).toContain(429);
  };

  test.each([
    ["one proxy", 1],
    ["the proxy's address", ["127.0.0.1"]],
    ["the proxy's network", ["loopback"]],
  ] as const)(
    "known as %s, the client's address counts, and only what the proxy says of it",
    async (_name, trustProxy) => {
      await start({ trustProxy, rateLimits: { key: plenty, address: slow } });
      await exhaust(through("192.0.2.1"));
      expect((await verify(badKey, through("192.0.2.2"))).status).toBe(401);
      // The proxy adds the address it sees; what the client wrote itself stands before it.
      expect((await verify(badKey, through("203.0.113.9", "192.0.2.1"))).status).toBe(429);
    },
  );

  test("of which a client forges the header, what is no address counts as one", async () => {
    await start({ trustProxy: 1, rateLimits: { key: plenty, address: slow } });
    const answers = [];
    for (let index = 0; index < 5; index++) answers.push(await verify(badKey, through(`made up ${index}`)));
    expect(statusesOf(answers)).toEqual([401, 401, 401, 429, 429]);
  });

  test("hosts of one IPv6 network count together", async () => {
    await start({ trustProxy: 1, rateLimits: { key: plenty, address: slow } });
    await exhaust(through("2001:db8:1:2::1"));
    expect((await verify(badKey, through("2001:db8:1:2:aaaa:bbbb:cccc:dddd"))).status).toBe(429);
    expect((await verify(badKey, through("2001:db8:1:3::1"))).status).toBe(401);
  });
});

test("without limits there are none, and no header speaks of any", async () => {
  await start({});
  const answers = await times(100, () => verify(goodKey));
  expect(new Set(statusesOf(answers))).toEqual(new Set([200]));
  expect(Object.keys(answers[0]?.headers ?? {}).filter((name) => name.startsWith("ratelimit"))).toEqual([]);
});
