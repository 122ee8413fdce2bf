import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openRawConnection, postText, type RawConnection } from "../../support/http/raw-connection.ts";
import { paymentBody, type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * Which answers count as delivered, however their connections end.
 */

let app: StubApp;
let connection: RawConnection;
beforeEach(async () => {
  app = await startStubApp();
  connection = await openRawConnection(app.port);
});
afterEach(async () => {
  connection.end();
  await app.close();
});

const settleText = (index = 0) =>
  postText(
    "/v1/settle",
    paymentBody({ authorizationNonce: `0x${index.toString(16).padStart(2, "0").repeat(32)}` }),
  );
const success = /"success":true/;
/** A success with its last byte, which comes a moment after the others. */
const wholeAnswer = /"transaction":"0x[0-9a-f]{64}"[^{}]*\}$/;
const wholeAnswersIn = (text: string) => text.match(/"success":true[^{}]*\}/g) ?? [];
/** The answers that have come, in order: each success's hash begins with a digit of its own. */
const hashesIn = (text: string) => [...text.matchAll(/"transaction":"0x(\d\d)/g)].map(([, digits]) => digits);
const hash = (digits: string) => `0x${digits.repeat(32)}` as const;
const longEnough = () => sleep(100);

describe("one settle on a connection", () => {
  test("whose answer is read is delivered", async () => {
    connection.send(settleText());
    const { fates } = (await app.settle(0)).succeed();
    await connection.until(success);
    await expect.poll(() => fates).toEqual(["delivered"]);
  });

  test("that is reset before the answer: the work is told to stop, and the success is lost", async () => {
    connection.send(settleText());
    const settle = await app.settle(0);
    connection.reset();
    await expect.poll(() => settle.signal.aborted).toBe(true);
    const { fates } = settle.succeed();
    await expect.poll(() => fates).toEqual(["lost"]);
  });

  test("that is reset at the first bytes of the answer, before its last: the success is lost", async () => {
    connection.send(settleText());
    const { fates } = (await app.settle(0)).succeed();
    await connection.until(success);
    connection.reset();
    await expect.poll(() => fates).toEqual(["lost"]);
    expect(wholeAnswersIn(connection.received())).toEqual([]);
  });

  test("that is reset in the moment of the answer: the success is lost", async () => {
    connection.send(settleText());
    const settle = await app.settle(0);
    connection.reset();
    const { fates } = settle.succeed();
    await expect.poll(() => fates).toEqual(["lost"]);
  });

  test.each([
    { caller: "caller", sendsNoMore: false },
    { caller: "caller sends no more, and", sendsNoMore: true },
  ])("whose $caller dies in the middle of the answer: the success is lost", async ({ sendsNoMore }) => {
    connection.send(settleText());
    if (sendsNoMore) connection.halfClose();
    const { fates } = (await app.settle(0)).succeed();
    await connection.until(success);
    connection.end();
    await expect.poll(() => fates).toEqual(["lost"]);
  });

  // HAProxy closes every connection to a server that it does not keep in this way, within a millisecond.
  test.each([0, 1, 20, 200])("that is reset %i ms after the whole answer stays delivered", async (ms) => {
    connection.send(settleText());
    const { fates } = (await app.settle(0)).succeed();
    await connection.until(wholeAnswer);
    if (ms > 0) await sleep(ms);
    connection.reset();
    await longEnough();
    expect(fates).toEqual(["delivered"]);
  });

  describe("of a caller on the same machine, with no proxy in between", () => {
    let direct: StubApp;
    beforeEach(async () => {
      direct = await startStubApp({ noProxies: true });
    });
    afterEach(() => direct.close());

    test("whose answer is read is delivered", async () => {
      const own = await openRawConnection(direct.port);
      own.send(settleText());
      const { fates } = (await direct.settle(0)).succeed();
      await own.until(wholeAnswer);
      await expect.poll(() => fates).toEqual(["delivered"]);
      own.end();
    });

    test.each([
      { caller: "caller", sendsNoMore: false },
      { caller: "caller sends no more, and", sendsNoMore: true },
    ])("whose $caller dies just before the answer: the success is lost", async ({ sendsNoMore }) => {
      for (let round = 0; round < 20; round++) {
        const own = await openRawConnection(direct.port);
        own.send(settleText());
        if (sendsNoMore) own.halfClose();
        const settle = await direct.settle(round);
        own.end();
        const { fates } = settle.succeed();
        await expect.poll(() => fates).toEqual(["lost"]);
      }
    });
  });

  test("that is closed in order after the answer stays delivered", async () => {
    connection.send(settleText());
    const { fates } = (await app.settle(0)).succeed();
    await connection.until(wholeAnswer);
    connection.end();
    await longEnough();
    expect(fates).toEqual(["delivered"]);
  });

  test("whose caller sends no more after the request is answered, delivered, and closed", async () => {
    connection.send(settleText());
    connection.halfClose();
    const settle = await app.settle(0);
    await longEnough();
    expect(settle.signal.aborted).toBe(false);
    const { fates } = settle.succeed();
    expect(await connection.closed()).toMatch(wholeAnswer);
    await expect.poll(() => fates).toEqual(["delivered"]);
  });

  test("whose caller sends no more, and then leaves: the work is told to stop, and the success is lost", async () => {
    connection.send(settleText());
    connection.halfClose();
    const settle = await app.settle(0);
    connection.end();
    await expect.poll(() => settle.signal.aborted).toBe(true);
    const { fates } = settle.succeed();
    await expect.poll(() => fates).toEqual(["lost"]);
  });

  test("whose caller leaves at once: the work is told to stop within a moment", async () => {
    connection.send(settleText());
    const settle = await app.settle(0);
    connection.end();
    // Asked whether it reads only every two seconds, it would be noticed later.
    await expect.poll(() => settle.signal.aborted, { timeout: 1_800 }).toBe(true);
  });

  test("of HTTP/1.0, which cannot be asked whether it reads: one that sends no more has left", async () => {
    connection.send(settleText().replace("HTTP/1.1", "HTTP/1.0"));
    const settle = await app.settle(0);
    connection.halfClose();
    await connection.closed();
    const { fates } = settle.succeed();
    await expect.poll(() => fates).toEqual(["lost"]);
    expect(connection.received()).toBe("");
  });
});

describe("settles one after the other on a connection", () => {
  test("a reset before the last byte of the second loses the second alone", async () => {
    connection.send(settleText(1));
    const first = (await app.settle(0)).succeed(hash("01"));
    await connection.until(wholeAnswer);
    connection.send(settleText(2));
    const second = (await app.settle(1)).succeed(hash("02"));
    await connection.until(/"transaction":"0x02/);
    connection.reset();
    await expect.poll(() => second.fates).toEqual(["lost"]);
    expect(first.fates).toEqual(["delivered"]);
  });

  test("a reset while the second waits leaves the first delivered", async () => {
    connection.send(settleText(1));
    const first = (await app.settle(0)).succeed();
    await connection.until(wholeAnswer);
    connection.send(settleText(2));
    const second = await app.settle(1);
    connection.reset();
    await expect.poll(() => second.signal.aborted).toBe(true);
    expect(first.fates).toEqual(["delivered"]);
    const { fates } = second.succeed();
    await expect.poll(() => fates).toEqual(["lost"]);
  });
});

describe("pipelined settles", () => {
  test("whose caller sends no more are all answered", async () => {
    connection.send(settleText(1) + settleText(2));
    connection.halfClose();
    const late = (await app.settle(1)).succeed(hash("02"));
    await longEnough();
    const early = (await app.settle(0)).succeed(hash("01"));
    expect(hashesIn(await connection.closed())).toEqual(["01", "02"]);
    await expect.poll(() => [...early.fates, ...late.fates]).toEqual(["delivered", "delivered"]);
  });

  test("are answered in the order they were sent in, whichever ends first", async () => {
    connection.send(settleText(1) + settleText(2));
    const [first, second] = [await app.settle(0), await app.settle(1)];
    const late = second.succeed(hash("02"));
    await longEnough();
    expect(connection.received()).toBe("");
    expect(late.fates).toEqual([]);
    const early = first.succeed(hash("01"));
    expect(hashesIn(await connection.until(/"0x02/))).toEqual(["01", "02"]);
    await expect.poll(() => [...early.fates, ...late.fates]).toEqual(["delivered", "delivered"]);
  });

  test("a reset before the last byte of the second answer loses the second alone", async () => {
    connection.send(settleText(1) + settleText(2));
    const fates = [
      (await app.settle(0)).succeed(hash("01")).fates,
      (await app.settle(1)).succeed(hash("02")).fates,
    ];
    await connection.until(/"0x02/);
    connection.reset();
    await expect.poll(() => fates).toEqual([["delivered"], ["lost"]]);
  });

  test("a reset after both answers takes neither back", async () => {
    connection.send(settleText(1) + settleText(2));
    const fates = [
      (await app.settle(0)).succeed(hash("01")).fates,
      (await app.settle(1)).succeed(hash("02")).fates,
    ];
    await connection.until(/"0x02[^{}]*\}$/);
    connection.reset();
    await longEnough();
    expect(fates).toEqual([["delivered"], ["delivered"]]);
  });

  test("a further request and its reset leave both delivered", async () => {
    connection.send(settleText(1) + settleText(2));
    const fates = [
      (await app.settle(0)).succeed(hash("01")).fates,
      (await app.settle(1)).succeed(hash("02")).fates,
    ];
    await connection.until(/"0x02[^{}]*\}$/);
    connection.send(settleText(3));
    await app.settle(2);
    connection.reset();
    await longEnough();
    expect(fates).toEqual([["delivered"], ["delivered"]]);
  });

  test("a reset while all wait tells all of them, the ones behind the first too", async () => {
    connection.send(settleText(1) + settleText(2) + settleText(3));
    const settles = [await app.settle(0), await app.settle(1), await app.settle(2)];
    // The second has its answer, and waits for the first's.
    const written = settles[1]?.succeed();
    connection.reset();
    await expect.poll(() => settles.map(({ signal }) => signal.aborted)).toEqual([true, true, true]);
    await expect.poll(() => written?.fates).toEqual(["lost"]);
  });

  test("garbage behind a waiting settle is answered after it, and not in its place", async () => {
    connection.send(`${settleText(1)}garbage\r\n\r\n`);
    const settle = await app.settle(0);
    await longEnough();
    expect(connection.received()).toBe("");
    const { fates } = settle.succeed();
    const [answer, refusal] = (await connection.closed()).split(/(?=HTTP\/1.1 400)/);
    expect(answer).toContain('"success":true');
    expect(refusal).toContain("malformed-request");
    await longEnough();
    expect(fates).toEqual(["delivered"]);
  });

  test("a reset behind garbage behind a waiting settle is noticed", async () => {
    connection.send(`${settleText(1)}garbage\r\n\r\n`);
    const settle = await app.settle(0);
    connection.reset();
    await expect.poll(() => settle.signal.aborted).toBe(true);
    const { fates } = settle.succeed();
    await expect.poll(() => fates).toEqual(["lost"]);
  });

  test("garbage after a success takes nothing back", async () => {
    connection.send(settleText(1));
    const { fates } = (await app.settle(0)).succeed();
    await connection.until(success);
    connection.send("garbage\r\n\r\n");
    expect(await connection.closed()).toContain("HTTP/1.1 400 Bad Request");
    await longEnough();
    expect(fates).toEqual(["delivered"]);
  });

  test("twenty at once neither warn nor leak", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on("warning", note);
    connection.send(Array.from({ length: 20 }, (_, index) => settleText(index)).join(""));
    const fates: (readonly string[])[] = [];
    for (let index = 0; index < 20; index++) fates.push((await app.settle(index)).succeed().fates);
    await expect.poll(() => fates.flat()).toEqual(Array(20).fill("delivered"));
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });
});
