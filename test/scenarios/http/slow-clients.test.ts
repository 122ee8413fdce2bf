import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import type { Timeouts } from "../../../src/service/http/connections/listen.ts";
import { openRawConnection, postText } from "../../support/http/raw-connection.ts";
import { goodKey, paymentBody, type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * Who is slow on purpose is cut off; who waits for a settlement is not.
 */

let app: StubApp;
afterEach(() => app.close());

const start = async (timeouts: Partial<Timeouts> = {}) => {
  app = await startStubApp({
    timeouts: { headersMs: 300, requestMs: 600, keepAliveMs: 400, stalledMs: 400, checkMs: 50, ...timeouts },
  });
};
describe("a request that takes its time", () => {
  test("to send headers is answered with 408 and closed", async () => {
    await start();
    const connection = await openRawConnection(app.port);
    connection.send("POST /v1/settle HTTP/1.1\r\nhost: localhost\r\n");
    const drip = setInterval(() => connection.send("x: y\r\n"), 50);
    const answer = await connection.closed();
    clearInterval(drip);
    expect(answer).toContain("HTTP/1.1 408 Request Timeout");
    expect(answer).toContain("application/problem+json");
    expect(JSON.parse(answer.slice(answer.indexOf("{")))).toMatchObject({
      type: "urn:x402-facilitator-kit:problem:request-timeout",
      status: 408,
    });
    connection.end();
  });

  test("to send anything at all is closed", async () => {
    await start();
    const connection = await openRawConnection(app.port);
    expect(await connection.closed()).toContain("408");
    connection.end();
  });

  test("to send its body is closed, before any node or database is asked", async () => {
    await start();
    const connection = await openRawConnection(app.port);
    connection.send(postText("/v1/settle", paymentBody()).slice(0, -200));
    const drip = setInterval(() => connection.send(" "), 50);
    await connection.closed();
    clearInterval(drip);
    expect(app.settles).toEqual([]);
    connection.end();
  });
});

test("a settle may wait for many times as long as a request may take to arrive", async () => {
  await start();
  const connection = await openRawConnection(app.port);
  connection.send(postText("/v1/settle", paymentBody()));
  const settle = await app.settle(0);
  await sleep(2_000);
  expect(connection.received()).toBe("");
  settle.succeed();
  expect(await connection.until(/"success":true/)).toContain("HTTP/1.1 200 OK");
  connection.end();
});

test("a connection that carries nothing is closed after a while, and not before", async () => {
  await start({ keepAliveMs: 2_000 });
  const connection = await openRawConnection(app.port);
  connection.send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await connection.until(/"ok"/);
  await sleep(1_000);
  connection.send("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await connection.until(/"ready"/);
  const readAt = performance.now();
  await connection.closed();
  expect(performance.now() - readAt).toBeGreaterThan(1_500);
  connection.end();
});

describe("while the service closes", () => {
  const agent = new Agent({ keepAlive: true });
  const settle = (index: number) => {
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: number | undefined;
      connection: string | undefined;
    }>();
    const outgoing = request(
      `${app.origin}/v1/settle`,
      {
        method: "POST",
        agent,
        headers: { authorization: goodKey, "content-type": "application/json" },
      },
      (response) => {
        response.resume();
        response.on("end", () =>
          resolve({ status: response.statusCode, connection: response.headers.connection }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify(paymentBody({ authorizationNonce: `0x0${index}${"00".repeat(31)}` })));
    return promise;
  };

  test("what waits is answered, and then nothing keeps it from ending", async () => {
    await start({ keepAliveMs: 600_000 });
    const waiting = settle(1);
    const asked = await app.settle(0);
    const closing = app.close();
    await sleep(100);
    asked.succeed();
    expect(await waiting).toEqual({ status: 200, connection: "close" });
    await closing;
  });

  test("a payment that comes in meanwhile is refused in words that x402 clients understand", async () => {
    await start({ keepAliveMs: 60_000, headersMs: 5_000, requestMs: 5_000 });
    const connection = await openRawConnection(app.port);
    const text = postText("/v1/settle", paymentBody());
    connection.send(text.slice(0, 40));
    const waiting = settle(1);
    const asked = await app.settle(0);
    const closing = app.close();
    await sleep(100);
    connection.send(text.slice(40));
    const refusal = await connection.closed();
    expect(refusal).toContain("HTTP/1.1 503");
    expect(refusal).toMatch(/\r\nconnection: close\r\n/i);
    expect(refusal).toMatch(/\r\nretry-after: 1\r\n/i);
    expect(JSON.parse(refusal.slice(refusal.indexOf("{")))).toMatchObject({
      type: "urn:x402-facilitator-kit:problem:shutting-down",
      success: false,
      errorReason: "unexpected_settle_error",
      transaction: "",
    });
    expect(app.settles).toHaveLength(1);
    asked.succeed();
    expect((await waiting).status).toBe(200);
    await closing;
    connection.end();
  });
});
