import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMetrics } from "../../../src/observe/metrics/metrics.ts";
import { openRawConnection, postText } from "../../support/http/raw-connection.ts";
import { goodKey, otherKey, paymentBody, type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * More than the process can do is refused at once, with 503 and Retry-After; what it has taken on it finishes.
 */

let app: StubApp;
let agent: Agent;
beforeEach(() => {
  agent = new Agent({ keepAlive: true, maxSockets: 500 });
});
afterEach(async () => {
  agent.destroy();
  await app.close();
});

type Answer = { status: number; retryAfter: string | undefined; body: Record<string, unknown> };

function post(operation: "verify" | "settle", key = goodKey): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const headers = { authorization: key, "content-type": "application/json" };
  const outgoing = request(
    `${app.origin}/v1/${operation}`,
    { method: "POST", agent, headers },
    (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          retryAfter: response.headers["retry-after"],
          body: JSON.parse(Buffer.concat(chunks).toString()),
        }),
      );
    },
  );
  outgoing.on("error", reject);
  outgoing.end(JSON.stringify(paymentBody()));
  return promise;
}

const roomy = {
  maxSettles: 1_000,
  maxVerifies: 1_000,
  maxOthers: 1_000,
  organizationShare: 1,
  maxLagMs: 60_000,
};

describe("a flood of 1,500 settles", () => {
  test("takes on as many as it may, refuses the others at once, and answers every one", async () => {
    app = await startStubApp({ pressure: { ...roomy, maxSettles: 100 }, logLevel: "info" });
    const refused: Answer[] = [];
    const answers = Array.from({ length: 1_500 }, async () => {
      const answer = await post("settle");
      if (answer.status === 503) refused.push(answer);
      return answer;
    });
    await expect.poll(() => refused.length).toBe(1_400);
    expect(app.settles).toHaveLength(100);
    for (const answer of refused) {
      expect(answer).toMatchObject({
        retryAfter: "2",
        body: { success: false, errorReason: "unexpected_settle_error", transaction: "" },
      });
    }
    // Refusals are counted, not logged.
    expect(app.log.filter(({ msg }) => msg === "request")).toEqual([]);

    for (const settle of app.settles) settle.succeed();
    const all = await Promise.all(answers);
    expect(all.filter(({ status }) => status === 200)).toHaveLength(100);

    const next = post("settle");
    (await app.settle(100)).succeed();
    expect((await next).status).toBe(200);
  });

  test("whose callers leave gives their places back", async () => {
    app = await startStubApp({ pressure: { ...roomy, maxSettles: 10 } });
    const waiting = Array.from({ length: 10 }, () => post("settle").catch(() => "left"));
    await app.settle(9);
    expect((await post("settle")).status).toBe(503);
    agent.destroy();
    expect(await Promise.all(waiting)).toEqual(Array(10).fill("left"));
    agent = new Agent();
    await expect.poll(() => app.settles.every(({ signal }) => signal.aborted)).toBe(true);
    const next = post("settle");
    (await app.settle(10)).succeed();
    expect((await next).status).toBe(200);
  });

  test("by one organization leaves places for another, and for a third", async () => {
    app = await startStubApp({ pressure: { ...roomy, maxSettles: 64, organizationShare: 7 / 8 } });
    const refused: Answer[] = [];
    const repeats = Array.from({ length: 200 }, async () => {
      const answer = await post("settle");
      if (answer.status === 503) refused.push(answer);
      return answer;
    });
    await expect.poll(() => refused.length).toBe(200 - 56);
    const other = Array.from({ length: 7 }, () => post("settle", otherKey));
    await app.settle(62);
    expect((await post("settle", otherKey)).status).toBe(503);
    for (const settle of app.settles) settle.succeed();
    const statuses = (await Promise.all([...repeats, ...other])).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(63);
    // The places are free again.
    const next = post("settle");
    (await app.settle(63)).succeed();
    expect((await next).status).toBe(200);
  });

  test("leaves verify alone, and the other way round", async () => {
    let release = () => {};
    const held = new Promise<undefined>((resolve) => {
      release = () => resolve(undefined);
    });
    app = await startStubApp({
      pressure: { ...roomy, maxSettles: 1, maxVerifies: 1 },
      verify: () => held,
    });
    const settle = post("settle");
    const asked = await app.settle(0);
    const verify = post("verify");
    await expect.poll(async () => (await post("verify")).status).toBe(503);
    expect((await post("settle")).status).toBe(503);
    release();
    asked.succeed();
    expect([(await settle).status, (await verify).status]).toEqual([200, 200]);
  });

  test("without a good key takes no places", async () => {
    app = await startStubApp({ pressure: { ...roomy, maxSettles: 1 } });
    const strangers = await Promise.all(Array.from({ length: 50 }, () => post("settle", "stranger")));
    expect(new Set(strangers.map(({ status }) => status))).toEqual(new Set([401]));
    const settle = post("settle");
    (await app.settle(0)).succeed();
    expect((await settle).status).toBe(200);
  });
});

describe("an event loop that cannot keep up", () => {
  test("refuses payments and says so, still says that it is alive, and recovers", async () => {
    app = await startStubApp({ pressure: { ...roomy, maxLagMs: 50 } });
    expect((await post("verify")).status).toBe(200);

    // Every turn of the loop takes 200 ms, as if each had too much to do.
    let busy = true;
    const work = () => {
      const until = performance.now() + 200;
      while (performance.now() < until);
      if (busy) setImmediate(work);
    };
    work();
    await expect.poll(async () => (await post("verify")).status).toBe(503);
    const alive = await fetch(`${app.origin}/livez`);
    expect(alive.status).toBe(200);
    busy = false;
    await expect.poll(async () => (await post("verify")).status).toBe(200);
  });

  test("is not seen in one long pause", async () => {
    app = await startStubApp({ pressure: { ...roomy, maxLagMs: 50 } });
    await sleep(1_500);
    const until = performance.now() + 400;
    while (performance.now() < until);
    for (let round = 0; round < 20; round++) {
      expect((await post("verify")).status).toBe(200);
      await sleep(100);
    }
  });
});

test("more connections than allowed are closed as they come, while all are in use", async () => {
  app = await startStubApp({ connections: { max: 2, maxPerAddress: 2 } });
  const connections = [await openRawConnection(app.port), await openRawConnection(app.port)];
  for (const connection of connections) connection.send(postText("/v1/settle", paymentBody()));
  await app.settle(1);
  const third = await openRawConnection(app.port);
  expect(await third.closed()).toBe("");
  connections[0]?.end();
  await expect.poll(async () => (await fetch(`${app.origin}/livez`)).status).toBe(200);
  for (const connection of connections) connection.end();
});

test("what is under way shows in the metrics", async () => {
  const { metrics, register } = await createMetrics();
  app = await startStubApp({ metrics });
  const settle = post("settle");
  const asked = await app.settle(0);
  expect(await register.metrics()).toContain('x402_requests_in_flight{operation="settle"} 1');
  asked.succeed();
  await settle;
  await expect.poll(() => register.metrics()).toContain('x402_requests_in_flight{operation="settle"} 0');
});
