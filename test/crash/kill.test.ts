import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requestJson } from "../../src/harness/http-json.ts";
import { settlementId } from "../../src/protocol/authorization.ts";
import { type Composition, compose } from "../support/composition.ts";
import type { Body } from "../support/service.ts";
import { type Boundary, boundaries } from "./boundaries.ts";

/*
 * kill -9 at every step between claim and answer: the next process ends every settlement in the state that the chain
 * shows, and the payer is charged once.
 */

/** How often each step is tried; the long run sets it to 20. */
const repetitions = Number(process.env.KILL_REPETITIONS ?? 1);

const apiKey = `x4k_crash_${"0".repeat(64)}`;
let composition: Composition;
let directory: string;
const children = new Set<ChildProcess>();

beforeAll(async () => {
  composition = await compose();
  directory = await mkdtemp(join(tmpdir(), "x402-crash-"));
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await composition.close();
  await rm(directory, { recursive: true });
});

async function startChild(database: string, dieAt?: Boundary): Promise<{ url: string; child: ChildProcess }> {
  const { rpcUrl, facilitatorContract } = composition.chain;
  const databaseUrl = `sqlite:${join(directory, database)}`;
  const child = spawn(
    process.execPath,
    [
      fileURLToPath(new URL("./service-child.ts", import.meta.url)),
      JSON.stringify({ rpcUrl, facilitatorContract, databaseUrl, apiKey, dieAt }),
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  children.add(child);
  child.once("exit", () => children.delete(child));
  const [url] = await once(createInterface(child.stdout), "line");
  return { url: `${url}/v1`, child };
}

const headers = { authorization: apiKey };
const settle = (url: string, body: Body) => requestJson(`${url}/settle`, { method: "POST", headers, body });

/** Settles again until the lease of the dead process has run out and there is a decided answer. */
async function settleUntilDecided(
  url: string,
  body: Body,
): Promise<{ success: boolean; transaction: string }> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const answer = (await settle(url, body)).body as {
      success: boolean;
      transaction: string;
      errorMessage?: string;
    };
    if (answer.success || !/another request/i.test(answer.errorMessage ?? "")) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the payment stayed undecided");
}

describe.each(boundaries)("killed when %s", (boundary) => {
  test.each(Array.from({ length: repetitions }, (_, index) => index + 1))(
    "the payment is charged once, and the repeat is answered as the chain shows (%i)",
    async (repetition) => {
      const database = `${boundaries.indexOf(boundary)}-${repetition}.sqlite`;
      const before = await composition.recipientBalance();
      const body = await composition.payment();
      const { authorization } = body.paymentPayload.payload;

      const first = await startChild(database, boundary);
      const died = once(first.child, "exit");
      const answered = await settle(first.url, body).then(
        ({ body: answer }) => (answer as { success: boolean }).success,
        () => false,
      );
      expect((await died)[1]).toBe("SIGKILL");

      const second = await startChild(database);
      const repeat = await settleUntilDecided(second.url, body);
      // Only what was marked as delivered may answer anything but the success.
      expect(repeat.success).toBe(boundary !== "marked as delivered");
      expect(answered || repeat.success).toBe(true);
      expect(await composition.recipientBalance()).toBe(before + 10_000n);

      const id = settlementId(8453, composition.chain.asset.address, authorization.from, authorization.nonce);
      const { body: settlement } = await requestJson(`${second.url}/settlements/${id}`, { headers });
      expect(settlement).toMatchObject({ state: "settled" });
      second.child.kill("SIGTERM");
      await once(second.child, "exit");
    },
  );
});
