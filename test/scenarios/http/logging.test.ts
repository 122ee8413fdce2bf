import { afterEach, describe, expect, test } from "vitest";
import { channels } from "../../../src/observe/channels/channels.ts";
import { invalid } from "../../../src/protocol/catalogue.ts";
import { UndeterminedError } from "../../../src/util/errors.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { openRawConnection, postText } from "../../support/http/raw-connection.ts";
import { goodKey, paymentBody, type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * One payment can be followed through the log by its settlement id, and the log holds nothing that it should not.
 */

let app: StubApp;
afterEach(() => app.close());

const body = paymentBody();
const payer = body.paymentPayload.payload.authorization.from;
const post = (
  operation: "verify" | "settle",
  payment: unknown = body,
  headers: Record<string, string> = {},
) =>
  requestJson(`${app.origin}/v1/${operation}`, {
    method: "POST",
    headers: { authorization: goodKey, ...headers },
    body: payment,
  });
const hash = `0x${"7a".repeat(32)}` as const;
/** The lines about requests, without what every line has. */
const requestLines = () =>
  app.log
    .filter(({ msg }) => msg === "request")
    .map(({ level, time, pid, hostname, msg, reqId, ms, ...line }) => line);

describe("a payment", () => {
  test("has one line for its verify and one for its settle, with the same settlement id", async () => {
    app = await startStubApp({ logLevel: "info" });
    await post("verify");
    const settling = post("settle");
    (await app.settle(0)).succeed(hash);
    const { headers } = await settling;
    const settlement = String(headers.location).replace("/v1/settlements/", "");
    const about = { method: "POST", status: 200, organization: "org", keyId: "good", network: "base", payer };
    await expect.poll(requestLines).toEqual([
      { ...about, route: "/v1/verify", settlement, outcome: "valid" },
      { ...about, route: "/v1/settle", settlement, outcome: "settled", hash },
    ]);
    for (const { ms, reqId } of app.log.filter(({ msg }) => msg === "request")) {
      expect(ms).toBeTypeOf("number");
      expect(reqId).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test("that is refused says why; one that is pending has its hash", async () => {
    app = await startStubApp({ logLevel: "info" });
    const refused = post("settle");
    (await app.settle(0)).answer({
      kind: "invalid",
      invalid: invalid("balance_too_small", "poor"),
    });
    await refused;
    const pending = post("settle");
    (await app.settle(1)).answer({ kind: "pending", transaction: hash });
    await pending;
    await expect.poll(requestLines).toMatchObject([
      { status: 200, outcome: "invalid", reason: "insufficient_funds", settlement: expect.any(String) },
      { status: 503, outcome: "pending", hash, settlement: expect.any(String) },
    ]);
  });

  test("that could not be told is explained once, by a line with the cause and the same ids", async () => {
    app = await startStubApp({ logLevel: "info" });
    const settling = post("settle");
    (await app.settle(0)).fail(
      new UndeterminedError("base could not be reached", {
        cause: new Error("timeout"),
        hints: ["RPC endpoint 1"],
      }),
    );
    const { headers } = await settling;
    await expect.poll(requestLines).toMatchObject([{ status: 503, outcome: "undetermined" }]);
    const explained = app.log.filter(({ err }) => err !== undefined);
    expect(explained).toMatchObject([
      {
        level: 40,
        msg: "no verdict",
        reqId: headers["x-request-id"],
        settlement: String(headers.location).replace("/v1/settlements/", ""),
        err: {
          message: "base could not be reached",
          hints: ["RPC endpoint 1"],
          cause: { message: "timeout" },
        },
      },
    ]);
  });

  test("that met something unforeseen is an error in the log, and tells the caller nothing of it", async () => {
    app = await startStubApp({
      logLevel: "info",
      verify: async () => {
        throw new TypeError("internal detail", { cause: new Error("deeper detail") });
      },
    });
    const answer = await post("verify");
    expect(answer.status).toBe(503);
    expect(JSON.stringify(answer.body)).not.toMatch(/internal|deeper/);
    await expect
      .poll(() => app.log.filter(({ level }) => Number(level) >= 50))
      .toMatchObject([
        {
          msg: "no verdict",
          err: { type: "TypeError", message: "internal detail", cause: { message: "deeper detail" } },
        },
      ]);
  });

  test("can be followed by the caller's own id, in the answer and in every line", async () => {
    app = await startStubApp({ logLevel: "info" });
    const settling = post("settle", body, { "x-request-id": "shop-17" });
    (await app.settle(0)).fail(new UndeterminedError("base could not be reached"));
    expect((await settling).headers["x-request-id"]).toBe("shop-17");
    await expect.poll(() => app.log.filter(({ requestId }) => requestId === "shop-17")).toHaveLength(2);
    expect(new Set(app.log.flatMap(({ reqId }) => reqId ?? []))).toHaveProperty("size", 1);
  });

  test("that could not be told logs no stack", async () => {
    app = await startStubApp({ logLevel: "info" });
    const settling = post("settle");
    (await app.settle(0)).fail(
      new UndeterminedError("base could not be reached", { cause: new Error("timeout") }),
    );
    expect((await settling).status).toBe(503);
    await expect.poll(requestLines).toHaveLength(1);
    expect(JSON.stringify(app.log)).not.toContain("stack");
  });

  test("whose caller left has its line all the same, and makes no noise", async () => {
    app = await startStubApp({ logLevel: "info" });
    const connection = await openRawConnection(app.port);
    connection.send(postText("/v1/settle", body));
    const settle = await app.settle(0);
    connection.reset();
    await expect.poll(() => settle.signal.aborted).toBe(true);
    settle.fail(new UndeterminedError("The wait was cut short"));
    await expect
      .poll(requestLines)
      .toMatchObject([{ route: "/v1/settle", callerLeft: true, settlement: expect.any(String) }]);
    expect(app.log.filter(({ err }) => err !== undefined)).toEqual([]);
  });
});

test("a settlement can be followed through signing, sending and mining by its id and its hash", async () => {
  app = await startStubApp({ logLevel: "info", serviceId: "this one" });
  const settlementId = `0x${"5e".repeat(32)}` as const;
  const about = { network: "base", transaction: hash } as const;
  for (const serviceId of ["this one", "another of this process"]) {
    channels.transaction.publish(() => ({
      ...{
        ...about,
        serviceId,
        step: "signed",
        kind: "settle",
        operator: `0x${"0e".repeat(20)}`,
        txNonce: 7,
      },
      ...{ settlementIds: [settlementId], maxFeePerGas: 1n, maxPriorityFeePerGas: 1n },
    }));
    channels.transaction.publish(() => ({ ...about, serviceId, step: "broadcast", everywhere: false }));
    channels.transaction.publish(() => ({ ...about, serviceId, step: "concluded", blockNumber: 12n }));
    channels.settlement.publish(() => ({ serviceId, settlementId, step: "settled", transaction: hash }));
  }
  const lines = app.log.filter((line) => line.hash === hash);
  expect(lines).toMatchObject([
    { level: 30, msg: "transaction signed", settlements: [settlementId], txNonce: 7 },
    { level: 30, msg: "transaction sent", network: "base" },
    { level: 30, msg: "transaction mined", block: 12 },
    { level: 30, msg: "payment settled", settlement: settlementId },
  ]);
});

describe("what a caller writes", () => {
  test("gets into the log only where it is known to be harmless", async () => {
    app = await startStubApp({ logLevel: "trace" });
    const book = 'forged\n{"level":60}'.repeat(500);
    await post("verify", paymentBody({ network: book }));
    await post("settle", paymentBody({ network: book }), { "idempotency-key": "secret-idempotency-key" });
    await post(
      "verify",
      { ...body, comment: "a comment in the body" },
      { "x-request-id": "{chosen-by-caller}" },
    );
    await post("verify", body, { authorization: "Bearer not-a-key", cookie: "c=1", "user-agent": "agent" });
    await requestJson(`${app.origin}/secret-path?secret=query`);
    await expect.poll(() => requestLines().length).toBe(5);
    const text = JSON.stringify(app.log);
    for (const hidden of [
      "forged",
      "comment",
      "chosen-by-caller",
      "not-a-key",
      "c=1",
      "agent",
      "secret",
      goodKey,
      goodKey.split("_")[2],
      body.paymentPayload.payload.signature,
    ]) {
      expect(text).not.toContain(hidden);
    }
  });

  test("without a good key is logged with its address, to block it by", async () => {
    app = await startStubApp({ logLevel: "info" });
    await post("verify", body, { authorization: "bad" });
    await expect.poll(requestLines).toEqual([
      {
        method: "POST",
        route: "/v1/verify",
        status: 401,
        address: "127.0.0.1",
        outcome: "refused",
        reason: "unauthorized",
      },
    ]);
  });
});
