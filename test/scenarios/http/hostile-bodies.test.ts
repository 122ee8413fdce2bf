import { setTimeout } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Composition, compose, type Running } from "../../support/composition.ts";
import { generatedBodies } from "../../support/generated-bodies.ts";
import { memoryInUse } from "../../support/memory-in-use.ts";
import { createRandom, type Random } from "../../support/random.ts";

/*
 * Bodies that are nearly payments, or nothing of the kind, against the service on a chain of its own: each gets a
 * verdict or a refusal that says why, nothing is thrown past the one error handler, and the memory does not grow.
 */

const count = Number(process.env.HOSTILE_BODIES ?? 2_000);
/** Generated and answered at a time. */
const blockSize = 1_000;
const concurrency = 200;

let composition: Composition;
let running: Running;
const log: string[] = [];
const uncaught: unknown[] = [];
const noteUncaught = (error: unknown) => void uncaught.push(error);

beforeAll(async () => {
  process.on("uncaughtExceptionMonitor", noteUncaught);
  process.on("unhandledRejection", noteUncaught);
  composition = await compose();
  await composition.openDirectory();
  running = await composition.start({ log, settleWaitMs: 30_000 });
});
afterAll(async () => {
  await composition?.stopAll();
  await composition?.close();
  process.off("uncaughtExceptionMonitor", noteUncaught);
  process.off("unhandledRejection", noteUncaught);
});

/** Does to the text of a body what JSON and HTTP allow, and what they do not. */
function damage(text: string, random: Random): string {
  const at = random.between(0, text.length);
  switch (random.between(0, 15)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return `${text.slice(0, at)}${String.fromCodePoint(random.between(0, 0x2ff))}${text.slice(at)}`;
    case 2:
      return text.replace(/"(\w+)":/, '"$1":null,"$1":');
    case 3: {
      const levels = random.between(1, 5_000);
      return text.replace(/\}$/, `,"deep":${"[".repeat(levels)}${"]".repeat(levels)}}`);
    }
    case 4: {
      const levels = random.between(1, 4_000);
      return text.replace(/\}$/, `,"deep":${'{"a":'.repeat(levels)}0${"}".repeat(levels)}}`);
    }
    case 5:
      return text.replace(/"0x[0-9a-f]*"/i, `"0x${"f".repeat(random.between(0, 30_000))}"`);
    case 6:
      return text.replace(/"(\d+)"/, `${"9".repeat(random.between(1, 400))}`);
    case 7:
      return text.replace(/"(\d+)"/, `"${"9".repeat(random.between(1, 400))}"`);
    case 8:
      return `\ufeff${text}`;
    case 9:
      return text.replace(/"network":"[^"]*"/, '"network":"\\ud800\\u0000<script>"');
    case 10:
      return text.replace(/"payload"/, '"__proto__":{"isValid":true},"payload"');
    case 11:
      return text.replace(/0x[0-9a-fA-F]{40}/, (address) => address.toUpperCase());
    default:
      return text;
  }
}

function idempotencyKey(random: Random): Record<string, string> {
  switch (random.between(0, 9)) {
    case 0:
      return { "idempotency-key": `key-${random.between(0, 50)}` };
    case 1:
      return { "idempotency-key": "k".repeat(random.between(1, 300)) };
    default:
      return {};
  }
}

test(`${count} generated bodies: no 500, nothing thrown, memory flat`, { timeout: 3_600_000 }, async () => {
  const random = createRandom();
  const wellFormed = await Promise.all([
    composition.payment("funded", 3_600, 1),
    composition.payment("funded", 3_600, 2),
    composition.payment("empty", 3_600, 1),
    composition.payment("smartWallet", 3_600, 2),
  ]);
  const bodies = generatedBodies(wellFormed.map((body) => ({ ...body })));
  const statuses = new Map<number, number>();
  const wrong: { body: string; status: number; answer: string }[] = [];

  async function send(text: string): Promise<void> {
    const operation = random.pick(["verify", "verify", "verify", "settle"]);
    const request = {
      method: "POST" as const,
      url: `/v1/${operation}`,
      headers: {
        authorization: running.key,
        "content-type": "application/json",
        ...idempotencyKey(random),
      },
      payload: text,
    };
    const { app } = running.service;
    let answer = await app.inject(request);
    // The node may be late, or the payment under way for another request. What lies with the body stays the same.
    for (let round = 0; answer.statusCode === 503 && round < 20; round++) {
      await setTimeout(250);
      answer = await app.inject(request);
    }
    const { statusCode: status, body } = answer;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    const isExpected = [200, 400, 413, 422].includes(status) && typeof JSON.parse(body) === "object";
    if (!isExpected) wrong.push({ body: text, status, answer: body });
  }

  const memory: number[] = [];
  const bugs: string[] = [];
  const blocks = Math.ceil(count / blockSize);
  for (let block = 0; block < blocks; block++) {
    const texts = fc
      .sample(bodies, { numRuns: blockSize, seed: random.seed + block })
      .map((body) => damage(JSON.stringify(body) ?? "", random));
    const workers = Array.from({ length: concurrency }, async () => {
      for (let text = texts.pop(); text !== undefined; text = texts.pop()) await send(text);
    });
    await Promise.all(workers);
    bugs.push(...log.splice(0).filter((line) => line.includes('"level":50')));
    if (block % Math.max(1, Math.floor(blocks / 10)) === 0) memory.push(memoryInUse() / 2 ** 20);
  }

  console.info(
    `seed ${random.seed}, statuses ${JSON.stringify(Object.fromEntries(statuses))}, MB ${memory.map(Math.round)}`,
  );
  expect({ wrong: wrong.slice(0, 5), bugs, uncaught }).toEqual({ wrong: [], bugs: [], uncaught: [] });
  expect(statuses.get(200)).toBeGreaterThan(count / 2);
  const [, warm = 0, ...later] = memory;
  for (const megabytes of later) expect(megabytes).toBeLessThan(warm + 40);
});
