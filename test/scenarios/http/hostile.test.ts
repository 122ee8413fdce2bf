import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRawConnection, postText } from "../../support/http/raw-connection.ts";
import { goodKey, paymentBody, type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * Bytes that no client of good will sends: every one is answered with what is wrong with it, or cut off, and none does
 * anything else.
 */

let app: StubApp;
beforeAll(async () => {
  app = await startStubApp({ docs: true });
});
afterAll(() => app.close());

/** Sends bytes on a connection of its own, and gives what came back within a moment. */
async function exchange(text: string, until: RegExp = /\r\n\r\n/): Promise<string> {
  const connection = await openRawConnection(app.port);
  connection.send(text);
  const answer = await Promise.any([connection.until(until), connection.closed()]);
  // What else might come.
  await sleep(20);
  connection.end();
  return connection.received() || answer;
}
const lines = (...parts: readonly string[]) => [...parts, "", ""].join("\r\n");
const host = "host: localhost";
const key = `authorization: ${goodKey}`;
const json = "content-type: application/json";
const problemOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf("{")));
const answersIn = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);

describe("what is not HTTP is 400 with a problem, and closes the connection", () => {
  test.each([
    ["noise", "\x00\x01\x02\r\n\r\n"],
    ["the beginning of TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["lines without carriage returns", `GET /livez HTTP/1.1\n${host}\n\n`],
    ["an unknown method", lines("BREW /v1/verify HTTP/1.1", host)],
    ["a folded header", lines("GET /livez HTTP/1.1", host, "a: b", " c")],
    ["a space before the colon", lines("GET /livez HTTP/1.1", "host : localhost")],
    ["a NUL in a header", lines("GET /livez HTTP/1.1", host, "a: b\x00c")],
    ["a bare CR in a header", lines("GET /livez HTTP/1.1", host, "a: b\rc: d")],
  ])("%s", async (_name, text) => {
    const answer = await exchange(text);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toMatch(/\r\nconnection: close\r\n/);
    expect(answer).toMatch(/\r\nx-request-id: [0-9a-f-]{36}\r\n/);
    expect(problemOf(answer)).toMatchObject({
      type: "urn:x402-facilitator-kit:problem:malformed-request",
      status: 400,
    });
  });

  test("a request without Host", async () => {
    const answer = await exchange(lines("GET /v1/supported HTTP/1.1", "accept: */*"));
    expect(problemOf(answer)).toMatchObject({ status: 400, detail: "The request has no Host header" });
  });
});

describe("what two readers could read in two ways is refused, and nothing behind it is done", () => {
  const smuggled = lines("GET /v1/supported HTTP/1.1", host);
  test.each([
    ["both lengths", ["content-length: 5", "transfer-encoding: chunked"]],
    ["two lengths", ["content-length: 5", "content-length: 6"]],
    ["a list of lengths", ["content-length: 5, 6"]],
    ["a negative length", ["content-length: -1"]],
    ["a signed length", ["content-length: +5"]],
    ["a hexadecimal length", ["content-length: 0x5"]],
    ["another coding", ["transfer-encoding: gzip"]],
    ["a coding that looks like chunked", ["transfer-encoding: xchunked"]],
    ["chunked before another coding", ["transfer-encoding: chunked, gzip"]],
    ["chunked twice", ["transfer-encoding: chunked", "transfer-encoding: chunked"]],
  ])("%s", async (_name, headers) => {
    const answer = await exchange(
      `${lines("POST /v1/verify HTTP/1.1", host, key, json, ...headers)}0\r\n\r\n${smuggled}`,
    );
    expect(answersIn(answer)).toEqual(["400"]);
    expect(answer).not.toContain("kinds");
  });

  test("a malformed chunk", async () => {
    const head = lines("POST /v1/verify HTTP/1.1", host, key, json, "transfer-encoding: chunked");
    expect(answersIn(await exchange(`${head}zz\r\n${smuggled}`))).toEqual(["400"]);
  });

  test("a body that is longer than it says: what is over is no request", async () => {
    const text = JSON.stringify(paymentBody());
    const head = lines("POST /v1/verify HTTP/1.1", host, key, json, `content-length: ${text.length - 10}`);
    expect(answersIn(await exchange(head + text))).toEqual(["400"]);
  });

  test("a body of a GET is read as one, and not as a request", async () => {
    const head = lines("GET /livez HTTP/1.1", host, `content-length: ${smuggled.length}`);
    const answer = await exchange(head + smuggled);
    expect(answersIn(answer)).toEqual(["200"]);
  });

  test.each([
    ["two Idempotency-Keys", ["idempotency-key: a", "idempotency-key: b"]],
    ["an Idempotency-Key of a book's length", [`idempotency-key: ${"k".repeat(256)}`]],
    ["an Idempotency-Key of no characters", ["idempotency-key: "]],
    ["an Idempotency-Key beyond ASCII", ["idempotency-key: caf\xe9"]],
  ])("%s", async (_name, headers) => {
    const answer = await exchange(postText("/v1/settle", paymentBody(), headers));
    expect(problemOf(answer)).toMatchObject({
      status: 400,
      errorReason: "unexpected_settle_error",
      detail: expect.stringContaining("Idempotency-Key"),
    });
    expect(app.settles).toEqual([]);
  });

  test("two API keys: the first counts", async () => {
    const answer = await exchange(
      lines("GET /v1/settlements/x HTTP/1.1", host, "authorization: another", key),
    );
    expect(answersIn(answer)).toEqual(["401"]);
  });
});

describe("what is too large", () => {
  test.each([
    ["a header", lines("GET /livez HTTP/1.1", host, `a: ${"x".repeat(20_000)}`)],
    ["many headers", lines("GET /livez HTTP/1.1", host, ...Array(4_000).fill("a: b"))],
    ["a path", lines(`GET /${"x".repeat(20_000)} HTTP/1.1`, host)],
  ])("%s is 431, and its sender gets to read that", async (_name, text) => {
    expect(problemOf(await exchange(text))).toMatchObject({ status: 431 });
  });

  test("a part of a path is 414", async () => {
    const answer = await exchange(lines(`GET /v1/settlements/${"x".repeat(500)} HTTP/1.1`, host, key));
    expect(problemOf(answer)).toMatchObject({ status: 414 });
  });

  test("a path that does not exist is not repeated in full", async () => {
    const answer = await exchange(lines(`GET /${"x".repeat(9_000)} HTTP/1.1`, host));
    expect(problemOf(answer).status).toBe(404);
    expect(answer.length).toBeLessThan(3_000);
  });
});

describe("paths and methods", () => {
  test.each(["/v1/settlements/%zz", "/%ff", "/docs/%zz"])("%s cannot be decoded: 400", async (path) => {
    const answer = await exchange(lines(`GET ${path} HTTP/1.1`, host, key));
    expect(problemOf(answer)).toMatchObject({
      status: 400,
      detail: "The path cannot be decoded: a % in it begins no valid escape; write a plain % as %25",
    });
    expect(answer).toMatch(/\r\nx-request-id: /);
    expect(answer).toMatch(/\r\nx-content-type-options: nosniff\r\n/);
  });

  test.each([
    "/__proto__",
    "/constructor",
    "/v1/__proto__",
    "/v1/settlements/__proto__",
    "/v1/settlements/0x",
    "//evil.example/%2e%2e",
    "/V1/Supported",
    "/livez;a=b",
    "/metrics",
    "/docs//evil.example",
    "/docs/../../etc/passwd",
    "/docs/%2e%2e%2f%2e%2e%2fpackage.json",
  ])("%s is 404", async (path) => {
    const answer = await exchange(lines(`GET ${path} HTTP/1.1`, host, key), /}$/);
    expect(problemOf(answer)).toMatchObject({
      type: "urn:x402-facilitator-kit:problem:not-found",
      status: 404,
    });
  });

  test("nothing of a path gets into a header", async () => {
    const answer = await exchange(lines("GET /a%0d%0aset-cookie:%20x=1 HTTP/1.1", host));
    const [head = ""] = answer.split("\r\n\r\n");
    expect(head).not.toContain("cookie");
    expect(await exchange(lines("GET /docs?//evil.example HTTP/1.1", "host: evil.example"))).toMatch(
      /\r\nlocation: \/docs\/\r\n/,
    );
  });

  test.each(["OPTIONS", "TRACE", "PUT", "DELETE", "GET", "HEAD"])("%s of a settle is 405", async (method) => {
    expect(answersIn(await exchange(lines(`${method} /v1/settle HTTP/1.1`, host, key)))).toEqual(["405"]);
  });

  test("a browser of another site is allowed nothing", async () => {
    const answer = await exchange(
      lines(
        "OPTIONS /v1/settle HTTP/1.1",
        host,
        "origin: https://evil.example",
        "access-control-request-method: POST",
        "access-control-request-headers: authorization",
      ),
    );
    expect(answer.toLowerCase()).not.toContain("access-control-allow");
  });

  test("HEAD tells what GET would, without a body", async () => {
    const answer = await exchange(lines("HEAD /v1/supported HTTP/1.1", host));
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer.split("\r\n\r\n")[1]).toBe("");
  });

  test("CONNECT is no way through, and an upgrade is no other protocol", async () => {
    expect(await exchange(lines("CONNECT example.com:443 HTTP/1.1", "host: example.com:443"))).toBe("");
    const upgraded = await exchange(
      lines("GET /livez HTTP/1.1", host, "connection: upgrade", "upgrade: websocket"),
    );
    expect(answersIn(upgraded)).toEqual(["200"]);
  });
});

describe("a payment with thousands of levels in a key that is ignored", () => {
  const nested = (open: string, close: string, levels: number) => {
    const text = JSON.stringify({ ...paymentBody(), comment: 0 });
    return text.replace('"comment":0', `"comment":${open.repeat(levels)}1${close.repeat(levels)}`);
  };
  const settleOf = (body: string, idempotencyKey: string) =>
    lines(
      "POST /v1/settle HTTP/1.1",
      ...[host, key, "content-type: application/json", `idempotency-key: ${idempotencyKey}`],
      `content-length: ${body.length}`,
    ) + body;

  test.each([
    ["arrays", "[", "]", 14_000],
    ["objects", '{"a":', "}", 5_000],
    ["both", '[{"a":', "}]", 3_500],
  ])("%s is settled under an Idempotency-Key as without one", async (_name, open, close, levels) => {
    const connection = await openRawConnection(app.port);
    const index = app.settles.length;
    connection.send(settleOf(nested(open, close, levels), "deep"));
    const settle = await app.settle(index);
    settle.succeed();
    expect(answersIn(await connection.until(/"success":true[^{}]*\}$/))).toEqual(["200"]);
    connection.end();
    // Another body is another body, however deep the difference.
    const { idempotency } = settle;
    expect(idempotency).toMatchObject({ key: "deep", bodyHash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    const other = await openRawConnection(app.port);
    other.send(settleOf(nested(open, close, levels).replace("1}", "2}").replace("1]", "2]"), "deep"));
    const another = await app.settle(index + 1);
    expect(another.idempotency?.bodyHash).not.toBe(idempotency?.bodyHash);
    another.succeed();
    await other.until(/"success":true/);
    other.end();
  });
});

describe("request ids", () => {
  test.each([
    "",
    "evil one",
    "evil,two",
    "<evil>",
    "{evil}",
    "evil;x",
    "\u00e9vil",
    "e".repeat(129),
    "evil\r\nx-request-id: evil",
  ])("are ours where the caller's is %j", async (id) => {
    const answer = await exchange(
      lines("GET /v1/supported HTTP/1.1", host, `x-request-id: ${id}`, "request-id: evil"),
    );
    expect(answer).toMatch(/\r\nx-request-id: [0-9a-f]{8}-[0-9a-f-]{27}\r\n/);
    expect(answer).not.toContain("evil");
  });

  test("are the caller's where it sends one that can be logged", async () => {
    for (const id of ["4bf92f3577b34da6", "shop/order:17@eu-1", "e".repeat(128)]) {
      const answer = await exchange(lines("GET /v1/supported HTTP/1.1", host, `x-request-id: ${id}`));
      expect(answer).toContain(`\r\nx-request-id: ${id}\r\n`);
    }
  });
});

test("after all of this the service is as it was, and nothing unforeseen was logged", async () => {
  expect(answersIn(await exchange(postText("/v1/verify", paymentBody())))).toEqual(["200"]);
  // The hello of TLS above.
  const logged = app.log.filter(({ level }) => Number(level) >= 40).map(({ msg }) => msg);
  expect(logged).toEqual([expect.stringContaining("http://")]);
});
