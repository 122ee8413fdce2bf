import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import type { Chain } from "../../../src/chain/chain.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import type { JsonResponse } from "../../../src/util/http-client.ts";
import type { Running } from "../../support/composition.ts";
import { value } from "../../support/recovery-scene.ts";
import type { Body } from "../../support/service.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * Anyone who sees an authorization can submit it straight to the token. Then the payer has paid, the value lies in the
 * facilitator contract, and our own transaction is reverted. What matters: the recipient gets it, once, and no
 * other account ever does.
 */

const scene = useRecoveryScene();

let strandedBefore = 0n;
let forwardsBefore = 0;
beforeEach(async () => {
  strandedBefore = await scene.stranded();
  forwardsBefore = await scene.recovererTransactions();
});

const request = (method: string, ...params: unknown[]) => scene.chain.node.request(method, ...params);
const answerOf = ({ body }: JsonResponse) =>
  body as { success: boolean; errorReason?: string; errorMessage?: string; transaction: Hex };
const settle = async (running: Running, body: Body) => answerOf(await scene.post(running, "settle", body));
const refused = { success: false, errorReason: "invalid_transaction_state", transaction: "" };

/** Where the money is: what the recipient got, and what lies in the contract that did not lie there before. */
async function expectMoney(expected: { recipient: bigint; stranded: bigint }): Promise<void> {
  expect({
    recipient: await scene.balanceOf(scene.recipient()),
    stranded: (await scene.stranded()) - strandedBefore,
    rival: await scene.balanceOf(scene.rivalRecipient()),
  }).toEqual({ ...expected, rival: 0n });
}

const forwards = async () => (await scene.recovererTransactions()) - forwardsBefore;

/** The success of a recovered payment is handed over once, and a public server's verify before it lets it pass. */
async function expectHandedOverOnce(running: Running, body: Body): Promise<void> {
  expect((await scene.post(running, "verify", body)).body).toMatchObject({ isValid: true });
  const { transaction } = await scene.settlement(running, body);
  expect(await settle(running, body)).toMatchObject({ success: true, transaction });
  expect(await settle(running, body)).toMatchObject(refused);
  await scene.severalRounds();
  await expectMoney({ recipient: value, stranded: 0n });
  expect(await forwards()).toBe(1);
}

/** Another payer's value lies in the contract, which no organization has claimed. */
async function strandBait(): Promise<void> {
  await scene.mine(scene.submission(await scene.sign("smartWallet")));
}

/** The bait, and what else is stranded, stays where it is, and the payment stays failed. */
async function expectNeverPaid(running: Running, body: Body, stranded: bigint): Promise<void> {
  await scene.severalRounds();
  expect(await scene.settlement(running, body)).toMatchObject({ state: "failed" });
  expect(await settle(running, body)).toMatchObject(refused);
  await expectMoney({ recipient: 0n, stranded });
  expect(await forwards()).toBe(0);
}

describe("an authorization that a third party submits before our transaction is mined", () => {
  test("is paid to the recipient within the same answer", async () => {
    const service = await scene.startService();
    const body = await scene.sign("funded");
    const answer = answerOf(await scene.settleBehind(service, body, scene.submission(body)));
    expect(answer).toMatchObject({ success: true });
    expect(await scene.settlement(service, body)).toMatchObject({
      state: "recovered",
      transaction: answer.transaction,
      failure: null,
    });
    expect(await settle(service, body)).toMatchObject(refused);
    await scene.severalRounds();
    await expectMoney({ recipient: value, stranded: 0n });
    expect(await forwards()).toBe(1);
  });

  test("and when the blocks have to be deep: within the same answer too", async () => {
    const service = await scene.startService({ network: { confirmations: 3 } });
    const body = await scene.sign("funded");
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(service, body);
    await scene.sendAhead(scene.submission(body));
    await release();
    const stopMining = scene.mineSteadily();
    expect(answerOf(await answer)).toMatchObject({ success: true });
    stopMining();
    await expectMoney({ recipient: value, stranded: 0n });
  });

  test("is recovered after an answer that came too early to know, and its success handed over later", async () => {
    const service = await scene.startService({ settleWaitMs: 2_000 });
    const body = await scene.sign("funded");
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(service, body);
    expect(await answer).toMatchObject({ status: 503 });
    await scene.sendAhead(scene.submission(body));
    await request("evm_mine");
    await release();
    await scene.untilState(service, body, "recovered");
    await expectHandedOverOnce(service, body);
  });
});

test("an authorization that is submitted after our failure was answered: recovered, and handed over", async () => {
  const service = await scene.startService();
  const body = await scene.sign("funded");
  const answer = answerOf(await scene.settleBehind(service, body, scene.ofToken("pause")));
  expect(answer).toMatchObject(refused);
  await scene.mine(scene.ofToken("unpause"));
  await scene.severalRounds();
  await expectMoney({ recipient: 0n, stranded: 0n });
  await scene.mine(scene.submission(body));
  await scene.untilState(service, body, "recovered");
  await expectHandedOverOnce(service, body);
});

describe("while another payer's value lies in the contract", () => {
  test("a payer who cancels her authorization gets nothing paid from it", async () => {
    await strandBait();
    const service = await scene.startService();
    const body = await scene.sign("funded");
    const answer = await scene.settleBehind(service, body, await scene.cancellation(body));
    expect(answerOf(answer)).toMatchObject(refused);
    await expectNeverPaid(service, body, value);
  });

  test("a payer who cancels after the failure was answered gets nothing either", async () => {
    await strandBait();
    const service = await scene.startService();
    const body = await scene.sign("funded");
    expect(answerOf(await scene.settleBehind(service, body, scene.ofToken("pause")))).toMatchObject(refused);
    await scene.mine(scene.ofToken("unpause"));
    await scene.mine(await scene.cancellation(body));
    await expectNeverPaid(service, body, value);
  });

  test("a payer who uses the same nonce to pay another account gets nothing paid from it", async () => {
    await strandBait();
    const service = await scene.startService();
    const body = await scene.sign("funded");
    const { nonce } = body.paymentPayload.payload.authorization;
    const other = await scene.sign("funded", { nonce, to: scene.rivalRecipient() });
    await scene.settleBehind(service, body, scene.submission(other));
    await scene.severalRounds();
    expect(await scene.settlement(service, body)).toMatchObject({ state: "failed" });
    expect(await forwards()).toBe(0);
    expect(await scene.balanceOf(scene.recipient())).toBe(0n);
    expect((await scene.stranded()) - strandedBefore).toBe(value);
  });

  test("a payer who uses the same nonce for another value gets nothing paid from it", async () => {
    await strandBait();
    const service = await scene.startService();
    const body = await scene.sign("funded");
    const { nonce } = body.paymentPayload.payload.authorization;
    const other = await scene.sign("funded", { nonce, value: 1n });
    expect(answerOf(await scene.settleBehind(service, body, scene.submission(other)))).toMatchObject(refused);
    await expectNeverPaid(service, body, value + 1n);
  });
});

/** A node that is behind in what it simulates: it lets a payment pass that is used already. */
function believing(chain: Chain): Chain {
  return {
    ...chain,
    simulate: (transaction, options) =>
      chain.simulate({ ...transaction, to: options.payer, data: "0x" }, options),
  };
}

test("a claim that is not older than the submission, which published the payment, is never paid", async () => {
  const service = await scene.startService({ wrap: { chain: believing } });
  const body = await scene.sign("funded");
  await scene.mine(scene.submission(body));
  const harvester = { ...service, key: service.rivalKey };
  expect(await settle(harvester, body)).toMatchObject(refused);
  expect(await scene.settlement(harvester, body)).toMatchObject({ state: "failed" });
  await scene.severalRounds();
  expect(await settle(harvester, body)).toMatchObject(refused);
  await expectMoney({ recipient: 0n, stranded: value });
  expect(await forwards()).toBe(0);
});

test("an organization that presents the payment of another one gets neither the money nor a word", async () => {
  const service = await scene.startService();
  const rival = { ...service, key: service.rivalKey };
  const body = await scene.sign("funded");
  const release = await scene.holdMining();
  const { answer } = await scene.settleInPool(service, body);
  await scene.sendAhead(scene.submission(body));
  const early = await settle(rival, body);
  await request("evm_mine");
  await release();
  expect(answerOf(await answer)).toMatchObject({ success: true });
  for (const { errorMessage = "", ...told } of [early, await settle(rival, body)]) {
    expect(told).toMatchObject(refused);
    expect(errorMessage).not.toContain("0x");
  }
  expect((await scene.post(rival, "verify", body)).body).toMatchObject({ isValid: false });
  await expectMoney({ recipient: value, stranded: 0n });
});

test("two instances with the same recoverer: one of them pays, once, and both know", async () => {
  const one = await scene.startService();
  const two = await scene.startService();
  const bodies = await Promise.all(Array.from({ length: 6 }, () => scene.sign("funded")));
  const release = await scene.holdMining();
  const answers = [];
  for (const [index, body] of bodies.entries()) {
    const { answer } = await scene.settleInPool(index % 2 === 0 ? one : two, body);
    answers.push(answer);
    await scene.sendAhead(scene.submission(body));
  }
  await request("evm_mine");
  await release();
  const stopMining = scene.mineSteadily();
  for (const answer of answers) expect(answerOf(await answer)).toMatchObject({ success: true });
  stopMining();
  for (const body of bodies) {
    for (const instance of [one, two]) {
      expect(await scene.settlement(instance, body)).toMatchObject({ state: "recovered" });
    }
  }
  await scene.severalRounds();
  await expectMoney({ recipient: 6n * value, stranded: 0n });
  expect(await forwards()).toBe(6);
});

describe("a service without the recoverer's key", () => {
  test("says that the value waits, and leaves it to one that has the key", async () => {
    const keyless = await scene.startService({ recovers: false });
    const body = await scene.sign("funded");
    const answer = answerOf(await scene.settleBehind(keyless, body, scene.submission(body)));
    expect(answer).toMatchObject(refused);
    expect(answer.errorMessage).toContain("its value waits to be forwarded");
    await scene.severalRounds();
    await expectMoney({ recipient: 0n, stranded: value });

    await scene.startService();
    await scene.untilState(keyless, body, "recovered");
    await expectHandedOverOnce(keyless, body);
  });
});

describe("a recoverer", () => {
  const { address } = harnessAccounts.recoverer;

  test("without gas money signs nothing, and pays when it has some", async () => {
    const service = await scene.startService({ settleWaitMs: 1_500 });
    const body = await scene.sign("funded");
    await scene.chain.setBalance(address, 0n);
    const answer = await scene.settleBehind(service, body, scene.submission(body));
    expect(answer.status).toBe(503);
    await expect
      .poll(() => scene.recoveryOf(body))
      .toMatchObject({ state: "queued", problem: expect.stringContaining("has 0 wei") });
    await scene.chain.setBalance(address, 10n ** 18n);
    await scene.untilState(service, body, "recovered");
    await expectHandedOverOnce(service, body);
  });

  test("without its role signs nothing, and pays when it has been given it back", async () => {
    const service = await scene.startService({ settleWaitMs: 1_500 });
    const body = await scene.sign("funded");
    await scene.mine(scene.ofAdmin("revokeRole", "RECOVERER_ROLE", address));
    const answer = await scene.settleBehind(service, body, scene.submission(body));
    expect(answer.status).toBe(503);
    await expect
      .poll(() => scene.recoveryOf(body))
      .toMatchObject({
        problem: "It cannot be forwarded now: the contract refuses (AccessControlUnauthorizedAccount)",
      });
    expect(await forwards()).toBe(0);
    await scene.mine(scene.ofAdmin("grantRole", "RECOVERER_ROLE", address));
    await scene.untilState(service, body, "recovered");
    await expectMoney({ recipient: value, stranded: 0n });
    expect(await forwards()).toBe(1);
  });

  test("signs nothing while the contract is paused", async () => {
    const service = await scene.startService({ settleWaitMs: 1_500 });
    const body = await scene.sign("funded");
    const calls = [scene.ofPauser("pause"), scene.submission(body)];
    expect((await scene.settleBehind(service, body, ...calls)).status).toBe(503);
    expect(await forwards()).toBe(0);
    await scene.mine(scene.ofPauser("unpause"));
    await scene.untilState(service, body, "recovered");
    await expectHandedOverOnce(service, body);
  });

  test("offers more for a forward that is not mined", async () => {
    const service = await scene.startService({ settleWaitMs: 20_000 });
    const body = await scene.sign("funded");
    const { answer, release } = await scene.forwardInPool(service, body);
    await request("anvil_setNextBlockBaseFeePerGas", "0x2540be400");
    await request("evm_mine");
    await expectMoney({ recipient: 0n, stranded: value });
    await release();
    const stopMining = scene.mineSteadily();
    expect(answerOf(await answer)).toMatchObject({ success: true });
    stopMining();
    await expectMoney({ recipient: value, stranded: 0n });
    expect(await forwards()).toBe(1);
  });

  test("whose txNonce was taken by hand sends its forward with the next", async () => {
    const service = await scene.startService({ settleWaitMs: 20_000 });
    const body = await scene.sign("funded");
    const { answer, release } = await scene.forwardInPool(service, body);
    await request("anvil_dropAllTransactions");
    await scene.mine({ from: address, to: address, data: "0x" });
    await release();
    const stopMining = scene.mineSteadily();
    expect(answerOf(await answer)).toMatchObject({ success: true });
    stopMining();
    await expectMoney({ recipient: value, stranded: 0n });
    expect(await forwards()).toBe(2);
  });
});

describe("when the block of the submission is replaced", () => {
  test("before it was deep enough: our own transaction settles, and nothing is recovered", async () => {
    const service = await scene.startService({ network: { confirmations: 3 }, settleWaitMs: 20_000 });
    const body = await scene.sign("funded");
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(service, body);
    await scene.sendAhead(scene.submission(body));
    await request("evm_mine");
    await sleep(300);
    await request("anvil_reorg", 1, []);
    await release();
    const stopMining = scene.mineSteadily();
    expect(answerOf(await answer)).toMatchObject({ success: true });
    stopMining();
    expect(await scene.settlement(service, body)).toMatchObject({ state: "settled" });
    await expectMoney({ recipient: value, stranded: 0n });
    expect(await forwards()).toBe(0);
  });

  test("under a forward that was sent: the forward comes to nothing, and our own transaction settles", async () => {
    await strandBait();
    const service = await scene.startService({ settleWaitMs: 20_000 });
    const body = await scene.sign("funded");
    const { answer, release } = await scene.forwardInPool(service, body);
    await request("anvil_reorg", 1, []);
    await release();
    const stopMining = scene.mineSteadily();
    expect(answerOf(await answer)).toMatchObject({ success: true });
    await scene.untilState(service, body, "settled");
    await scene.severalRounds();
    stopMining();
    await expectMoney({ recipient: value, stranded: value });
  });

  test("under a forward that was sent, and the payment is submitted again: it is paid, once", async () => {
    await strandBait();
    const service = await scene.startService({ settleWaitMs: 20_000 });
    const body = await scene.sign("funded");
    const { answer, release } = await scene.forwardInPool(service, body);
    await request("anvil_reorg", 1, []);
    await scene.sendAhead(scene.submission(body));
    await release();
    const stopMining = scene.mineSteadily();
    expect(answerOf(await answer)).toMatchObject({ success: true });
    await scene.untilState(service, body, "recovered");
    await scene.severalRounds();
    stopMining();
    await expectMoney({ recipient: value, stranded: value });
  });
});
