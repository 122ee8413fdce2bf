import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import { openRawConnection, postText } from "../../support/http/raw-connection.ts";
import { goodKey } from "../../support/http/stub-app.ts";
import { runningChain } from "../../support/running-chain.ts";
import {
  type Answer,
  addRival,
  type Body,
  balanceOf,
  post,
  signedRequest,
  startTestHarness,
} from "../../support/service.ts";

/*
 * One success per authorization, whose payment it is, late rather than wrong.
 */

let harness: RunningHarness;
/** A second organization, paid at the admin's address. */
let rivalKey: string;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], settleWaitMs: 2_000 });
  rivalKey = await addRival(harness);
});
afterAll(() => harness.close());

const base = () => runningChain(harness, "base");
const node = () => base().node;

/** Runs something while the chain mines nothing. */
async function whileMiningIsHeld<T>(act: () => Promise<T>): Promise<T> {
  await base().hold();
  try {
    return await act();
  } finally {
    await base().release();
  }
}

/** Waits until the operator's transaction is in the node's pool. */
async function untilSent(): Promise<void> {
  for (;;) {
    const count = (block: string) =>
      node().request("eth_getTransactionCount", harnessAccounts.operator.address, block);
    if ((await count("pending")) !== (await count("latest"))) return;
    await sleep(10);
  }
}

const successes = (answers: readonly Answer[]) => answers.filter(({ body }) => body.success === true);

describe("one success per authorization", () => {
  test("twenty identical settles at once: one success, and the money moves once", async () => {
    const body = await signedRequest(harness);
    const before = await balanceOf(harness, localOrganization.recipient);
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(harness, "settle", body)));
    expect(successes(answers)).toHaveLength(1);
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      if (answer.body.success !== true) {
        expect(answer.body).toMatchObject({ errorReason: "invalid_transaction_state", transaction: "" });
      }
    }
    expect(await balanceOf(harness, localOrganization.recipient)).toBe(before + 10_000n);
  });

  test("a duplicate of a payment under way is told that it is pending, with its hash, and never that it failed", async () => {
    const body = await signedRequest(harness);
    const { first, duplicates } = await whileMiningIsHeld(async () => {
      const first = post(harness, "settle", body);
      await untilSent();
      const duplicates = Array.from({ length: 40 }, () => post(harness, "settle", body));
      // Few of them wait for the first, so that a flood of them is answered at once.
      const answer = await Promise.race(duplicates);
      expect(answer.status).toBe(503);
      expect(answer.headers["x-settlement-state"]).toBe("pending");
      return { first, duplicates };
    });
    const answers = await Promise.all([first, ...duplicates]);
    expect(successes(answers)).toHaveLength(1);
    for (const { status, body } of answers) {
      if (status === 200 && body.success !== true) expect(body.errorMessage).toContain("settled before");
    }
  });

  test("settles of one payment in both versions at once: one success", async () => {
    const v1 = await signedRequest(harness);
    const { signature, authorization } = v1.paymentPayload.payload;
    const v2 = await signedRequest(harness, { x402Version: 2 });
    v2.paymentPayload.payload = { signature, authorization };
    const answers = await Promise.all([post(harness, "settle", v1), post(harness, "settle", v2)]);
    expect(successes(answers)).toHaveLength(1);
  });

  test("another authorization of the same nonce gets nothing from the first one's success", async () => {
    const nonce: Hex = `0x${"7a".repeat(32)}`;
    const first = await signedRequest(harness, { terms: { nonce } });
    const other = await signedRequest(harness, { amount: 5n, terms: { nonce } });
    expect((await post(harness, "settle", first)).body).toMatchObject({ success: true });
    expect((await post(harness, "verify", other)).body).toMatchObject({
      invalidReason: "invalid_transaction_state",
    });
    expect((await post(harness, "settle", other)).body).toMatchObject({
      errorReason: "invalid_transaction_state",
    });
  });
});

describe("whose payment it is", () => {
  test("of two organizations that settle one payment, one is paid, and the other learns no hash", async () => {
    const body = await signedRequest(harness);
    const before = await balanceOf(harness, harnessAccounts.admin.address);
    const mine = await post(harness, "settle", body);
    const theirs = await post(harness, "settle", body, { authorization: rivalKey });
    expect(mine.body).toMatchObject({ success: true });
    expect(theirs.body).toMatchObject({ errorReason: "invalid_transaction_state" });
    expect(theirs.body.errorMessage).not.toContain(mine.body.transaction);
    expect(await balanceOf(harness, harnessAccounts.admin.address)).toBe(before);
  });

  test("a settlement is shown to its organization alone", async () => {
    const body = await signedRequest(harness);
    const { headers } = await post(harness, "settle", body);
    const url = new URL(String(headers.location), harness.description.facilitator.url);
    const see = (key: string) => fetch(url, { headers: { authorization: key } });
    const mine = await see(localOrganization.apiKey);
    expect(await mine.json()).toMatchObject({
      state: "settled",
      value: "10000",
      payer: testPayers.funded.address.toLowerCase(),
      recipient: localOrganization.recipient.toLowerCase(),
      deliveredAt: expect.any(String),
    });
    expect((await see(rivalKey)).status).toBe(404);
    expect((await see("x4k_nobody_00000000000000000000000000000000")).status).toBe(401);
  });

  test("a junk signature for a known nonce claims nothing", async () => {
    const body = await signedRequest(harness);
    const junk = structuredClone(body);
    junk.paymentPayload.payload.signature = `0x${"11".repeat(64)}1b`;
    const refusals = await Promise.all(
      Array.from({ length: 10 }, () => post(harness, "settle", junk, { authorization: rivalKey })),
    );
    expect(refusals.map(({ body: { errorReason } }) => errorReason)).toEqual(
      Array(10).fill("invalid_payload"),
    );
    expect((await post(harness, "settle", body)).body).toMatchObject({ success: true });
  });

  test("one balance does not back many authorizations", async () => {
    const chain = harness.chains.base;
    await chain?.fund(testPayers.empty.address, 25_000n);
    const bodies = await Promise.all(
      Array.from({ length: 8 }, () => signedRequest(harness, { payer: "empty" })),
    );
    const answers = await Promise.all(bodies.map((body) => post(harness, "settle", body)));
    expect(successes(answers)).toHaveLength(2);
    for (const { body } of answers) {
      if (body.success !== true)
        expect(body).toMatchObject({ errorReason: "insufficient_funds", transaction: "" });
    }
  });
});

describe("late rather than wrong", () => {
  test("v1: past the wait it is a 503 that says pending; asked again, it is the success, once", async () => {
    const body = await signedRequest(harness);
    const pending = await whileMiningIsHeld(() => post(harness, "settle", body));
    expect(pending).toMatchObject({
      status: 503,
      headers: { "retry-after": "2", "x-settlement-state": "pending" },
      body: { success: false, errorReason: "unexpected_settle_error", transaction: "", network: "base" },
    });
    expect((await post(harness, "verify", body)).body).toMatchObject({ isValid: true });
    expect((await post(harness, "settle", body)).body).toMatchObject({ success: true });
    expect((await post(harness, "settle", body)).body).toMatchObject({ success: false });
  });

  test("v2: past the wait it is settlement_pending with the hash", async () => {
    const body = await signedRequest(harness, { x402Version: 2 });
    const pending = await whileMiningIsHeld(() => post(harness, "settle", body));
    expect(pending).toMatchObject({
      status: 503,
      body: { success: false, errorReason: "settlement_pending", network: "eip155:8453" },
    });
    const settled = await post(harness, "settle", body);
    expect(settled.body).toMatchObject({ success: true, transaction: pending.body.transaction });
  });

  test("while it is unfinished, verify says valid to its owner, and used to every other organization", async () => {
    const body = await signedRequest(harness);
    const settling = whileMiningIsHeld(async () => {
      const answer = post(harness, "settle", body);
      await untilSent();
      expect((await post(harness, "verify", body)).body).toMatchObject({ isValid: true });
      expect((await post(harness, "verify", body, { authorization: rivalKey })).body).toMatchObject({
        isValid: false,
        invalidReason: "invalid_transaction_state",
      });
      const repeat = await post(harness, "settle", body);
      expect(repeat.status).toBe(503);
      expect(repeat.headers["x-settlement-state"]).toBe("pending");
      expect(repeat.body.errorMessage).toMatch(/0x[0-9a-f]{64}/);
      return { answer };
    });
    expect((await (await settling).answer).body).toMatchObject({ success: true });
  });

  test("mined and reverted is invalid_transaction_state, and stays so", async () => {
    const chain = harness.chains.base;
    const payer = testPayers.smartWallet.address;
    const body = await signedRequest(harness, { payer: "smartWallet" });
    const balance = await balanceOf(harness, payer);
    const answer = await whileMiningIsHeld(async () => {
      const settling = post(harness, "settle", body);
      await untilSent();
      await chain?.node.request("anvil_dealERC20", payer, chain.asset.address, "0x0");
      await chain?.node.request("evm_mine");
      return settling;
    });
    expect(answer).toMatchObject({
      status: 200,
      body: { success: false, errorReason: "invalid_transaction_state", transaction: "" },
    });
    await chain?.fund(payer, balance);
    expect((await post(harness, "verify", body)).body).toMatchObject({
      invalidReason: "invalid_transaction_state",
    });
    expect((await post(harness, "settle", body)).body).toMatchObject({
      errorReason: "invalid_transaction_state",
    });
  });
});

describe("an answer that does not arrive", () => {
  /** Sends a settle and cuts the connection when `cut` resolves. */
  async function settleAndHangUp(body: Body, cut: () => Promise<unknown>): Promise<void> {
    const outgoing = request(`${harness.description.facilitator.url}/settle`, {
      method: "POST",
      headers: { authorization: localOrganization.apiKey, "content-type": "application/json" },
    });
    outgoing.on("error", () => {});
    outgoing.end(JSON.stringify(body));
    await cut();
    outgoing.destroy();
  }

  test("a caller that hangs up while waiting: the same payment again is the success, and the money moves once", async () => {
    const body = await signedRequest(harness);
    const before = await balanceOf(harness, localOrganization.recipient);
    await whileMiningIsHeld(() => settleAndHangUp(body, untilSent));
    expect((await post(harness, "verify", body)).body).toMatchObject({ isValid: true });
    const again = await post(harness, "settle", body);
    expect(again.body).toMatchObject({ success: true });
    expect((await post(harness, "settle", body)).body).toMatchObject({ success: false });
    expect(await balanceOf(harness, localOrganization.recipient)).toBe(before + 10_000n);
  });
});

describe("Idempotency-Key", () => {
  test("the same key and body get the same answer again; without the key it is used", async () => {
    const body = await signedRequest(harness);
    const headers = { "idempotency-key": "order-1" };
    const first = await post(harness, "settle", body, headers);
    expect(first.body).toMatchObject({ success: true });
    expect((await post(harness, "settle", body, headers)).body).toEqual(first.body);
    expect((await post(harness, "settle", body)).body).toMatchObject({ success: false });
  });

  test("whose success was lost on its way, and then went to a request without the key, gives no second one", async () => {
    const body = await signedRequest(harness);
    const key = "idempotency-key: order-7";
    const connection = await openRawConnection(Number(new URL(harness.description.facilitator.url).port));
    connection.send(postText("/v1/settle", body, [key]).replace(goodKey, localOrganization.apiKey));
    await connection.until(/"success":true/);
    connection.reset();
    const answers = [
      await post(harness, "settle", body),
      await post(harness, "settle", body, { "idempotency-key": "order-7" }),
    ];
    expect(answers.map((answer) => answer.body.success)).toEqual([true, false]);
  });

  test("the same key and body at once: both get the one success", async () => {
    const body = await signedRequest(harness);
    const headers = { "idempotency-key": "order-2" };
    const before = await balanceOf(harness, localOrganization.recipient);
    const answers = await Promise.all([1, 2, 3].map(() => post(harness, "settle", body, headers)));
    expect(successes(answers)).toHaveLength(3);
    expect(await balanceOf(harness, localOrganization.recipient)).toBe(before + 10_000n);
  });

  test("the same key with another body is refused, and nothing is sent", async () => {
    const headers = { "idempotency-key": "order-3" };
    await post(harness, "settle", await signedRequest(harness), headers);
    const answer = await post(harness, "settle", await signedRequest(harness), headers);
    expect(answer).toMatchObject({ status: 422, body: { success: false, transaction: "" } });
  });

  test("a refusal is not kept, so that a key can fill no database: its key is free for another body", async () => {
    const headers = { "idempotency-key": "order-8" };
    const refused = await signedRequest(harness);
    refused.paymentRequirements.maxAmountRequired = "20000";
    for (let repeat = 0; repeat < 2; repeat++) {
      expect((await post(harness, "settle", refused, headers)).body).toMatchObject({ success: false });
    }
    const answer = await post(harness, "settle", await signedRequest(harness), headers);
    expect(answer).toMatchObject({ status: 200, body: { success: true } });
  });

  test("a refusal that may change is not repeated: what has become possible since is done", async () => {
    const headers = { "idempotency-key": "order-5" };
    const body = await signedRequest(harness, { payer: "empty" });
    expect((await post(harness, "settle", body, headers)).body).toMatchObject({
      errorReason: "insufficient_funds",
    });
    await base().fund(testPayers.empty.address, 10_000n);
    const answer = await post(harness, "settle", body, headers);
    expect(answer.body).toMatchObject({ success: true });
    expect((await post(harness, "settle", body, headers)).body).toEqual(answer.body);
  });

  test("of a repeat that found the payment under way: its answer is not kept, and the outcome shows", async () => {
    const headers = { "idempotency-key": "order-6" };
    const body = await signedRequest(harness);
    const { first, repeat } = await whileMiningIsHeld(async () => {
      const first = post(harness, "settle", body);
      await untilSent();
      return { first, repeat: await post(harness, "settle", body, headers) };
    });
    expect(repeat.status).toBe(503);
    const answers = [await first, await post(harness, "settle", body, headers)];
    expect(successes(answers)).toHaveLength(1);
  });

  test("a refusal is repeated as well, and another organization's key is another key", async () => {
    const headers = { "idempotency-key": "order-4" };
    const body = await signedRequest(harness, { payer: "blacklisted" });
    const first = await post(harness, "settle", body, headers);
    expect(first.body).toMatchObject({ errorReason: "invalid_transaction_state" });
    expect((await post(harness, "settle", body, headers)).body).toEqual(first.body);
    const other = await post(harness, "settle", await signedRequest(harness), {
      ...headers,
      authorization: rivalKey,
    });
    expect(other.body).toMatchObject({ success: true });
  });
});
