import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import {
  authorizationCanceledTopic,
  authorizationUsedTopic,
  transferTopic,
} from "../../../src/methods/on-chain/events.ts";
import { addressWord, type Hex, quantity, uintWord } from "../../../src/protocol/hex.ts";
import { altering } from "../../support/misbehaviour.ts";
import { composeRecovery, type RecoveryScene, value } from "../../support/recovery-scene.ts";
import { type Behaviour, forwardingTo, type StubNode, startStubNode } from "../../support/stub-node.ts";

/*
 * Whose word it takes to pay a payment out of the facilitator contract, which cannot tell a cancelled authorization from
 * one that was used. Its value would be that of other payers.
 */

type Log = { topics: Hex[]; data: Hex; logIndex: Hex };

let scene: RecoveryScene;
let first: StubNode;
let second: StubNode;
let lies = 0;
let strandedBefore = 0n;
let forwardsBefore = 0;
beforeAll(async () => {
  scene = await composeRecovery();
});
afterAll(() => scene.close());
beforeEach(async () => {
  await scene.openDirectory();
  first = await startStubNode(forwardingTo(scene.chain.rpcUrl));
  second = await startStubNode(forwardingTo(scene.chain.rpcUrl));
  lies = 0;
  strandedBefore = await scene.stranded();
  forwardsBefore = await scene.recovererTransactions();
});
afterEach(async () => {
  await scene.clear();
  await Promise.all([first.stop(), second.stop()]);
});

/** A node that says of each cancelled authorization, by logs and receipt, that it brought its value to the contract. */
function lyingAboutCancellations(): Behaviour {
  const { rpcUrl, facilitatorContract } = scene.chain;
  const isCancellation = ({ topics }: Log) => topics[0] === authorizationCanceledTopic;
  const asUse = (log: Log): Log => ({
    ...log,
    topics: [authorizationUsedTopic, ...log.topics.slice(1)],
  });
  const asTransfer = (log: Log): Log => ({
    ...log,
    topics: [transferTopic, log.topics[1] ?? "0x", `0x${addressWord(facilitatorContract)}`],
    data: `0x${uintWord(value)}`,
    logIndex: `0x${(Number(log.logIndex) + 1).toString(16)}`,
  });
  const lyingLogs = altering(forwardingTo(rpcUrl), "eth_getLogs", (result) =>
    (result as Log[]).map((log) => (isCancellation(log) ? asUse(log) : log)),
  );
  return altering(lyingLogs, "eth_getTransactionReceipt", (result) => {
    const receipt = result as { logs: Log[] } | null;
    if (!receipt?.logs.some(isCancellation)) return receipt;
    lies++;
    return {
      ...receipt,
      logs: receipt.logs.flatMap((log) => (isCancellation(log) ? [asUse(log), asTransfer(log)] : log)),
    };
  });
}

async function expectNothingForwarded(stranded: bigint): Promise<void> {
  await scene.severalRounds();
  expect(await scene.balanceOf(scene.recipient())).toBe(0n);
  expect(await scene.stranded()).toBe(strandedBefore + stranded);
  expect((await scene.recovererTransactions()) - forwardsBefore).toBe(0);
}

const twoEndpoints = () => ({ rpcUrls: [first.url, second.url] as const, forwardEndpoints: 2 });

test.each([
  ["the other endpoint says otherwise", () => {}],
  ["the other endpoint does not answer", () => second.behave((_, response) => void response.destroy())],
])(
  "a cancelled authorization that the first endpoint calls used is not paid from the value of others: %s",
  async (_, change) => {
    first.behave(lyingAboutCancellations());
    const service = await scene.startService({ network: twoEndpoints(), settleWaitMs: 2_000 });
    // Another payer's value, which no organization has claimed.
    await scene.mine(scene.submission(await scene.sign("smartWallet")));
    const body = await scene.sign("funded");
    const answer = await scene.settleBehind(service, body, await scene.cancellation(body));
    expect(answer.body).toMatchObject({ success: false });
    change();
    const before = lies;
    await expect.poll(() => lies).toBeGreaterThan(before);
    await expectNothingForwarded(value);
  },
);

test("a payment that was submitted directly is paid out once two endpoints show it", async () => {
  const service = await scene.startService({ network: twoEndpoints() });
  const body = await scene.sign("funded");
  const answer = await scene.settleBehind(service, body, scene.submission(body));
  expect(answer.body).toMatchObject({ success: true });
  expect(await scene.balanceOf(scene.recipient())).toBe(value);
  expect(await scene.stranded()).toBe(strandedBefore);
});

/** A node that shows the chain as it was at a block, until it is given a transaction to send. */
function frozenAt(block: bigint): Behaviour {
  const frozen = new Set(["eth_call", "eth_getBlockByNumber", "eth_getBalance"]);
  const { rpcUrl } = scene.chain;
  let isOver = false;
  return async (calls, response, body) => {
    isOver ||= calls.some(({ method }) => method === "eth_sendRawTransaction");
    if (isOver) return forwardingTo(rpcUrl)(calls, response, body);
    const asked = calls.map(({ params, ...call }) => ({
      ...{ jsonrpc: "2.0", ...call },
      params: frozen.has(call.method)
        ? params.map((param) => (param === "latest" ? quantity(block) : param))
        : params,
    }));
    return forwardingTo(rpcUrl)(calls, response, JSON.stringify(asked));
  };
}

test.each(["through the contract", "straight to the merchant"])(
  "what was paid %s before anybody claimed it is nobody's success, though the first endpoint hides it then",
  async (route) => {
    const { request } = createLocalRpc(scene.chain.rpcUrl);
    const isStraight = route === "straight to the merchant";
    const body = await scene.sign("funded", {}, isStraight ? scene.recipient() : undefined);
    const before = BigInt(String(await request("eth_blockNumber")));
    await scene.mine(scene.submission(body));
    // Half a minute later, by our clock too: blocks of tests are dated a second apart at least, and so run ahead of it.
    await request("evm_increaseTime", 30);
    await request("evm_mine");
    const ahead = Number(await scene.chain.now()) * 1000 - Date.now();
    const realNow = Date.now;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => realNow() + ahead);
    onTestFinished(() => clock.mockRestore());
    first.behave(frozenAt(before));
    const service = await scene.startService({ network: { ...twoEndpoints(), payTo: "any" } });
    const stopMining = scene.mineSteadily();
    const accomplice = { ...service, key: service.rivalKey };
    for (let repeat = 0; repeat < 2; repeat++) {
      const answer = await scene.post(accomplice, "settle", body);
      expect(answer.body).toMatchObject({ success: false, situation: "transaction_failed" });
    }
    await scene.severalRounds();
    stopMining();
    expect(await scene.balanceOf(scene.rivalRecipient())).toBe(0n);
    expect((await scene.recovererTransactions()) - forwardsBefore).toBe(0);
  },
);

test("with one URL, however often it is named, such a payment is queued, with the way to confirm it", async () => {
  const service = await scene.startService({
    network: { rpcUrls: [first.url, `${first.url}/`], forwardEndpoints: 2 },
    settleWaitMs: 2_000,
  });
  const body = await scene.sign("funded");
  const submission = scene.submission(body);
  const answer = await scene.settleBehind(service, body, submission);
  expect(answer.body).toMatchObject({ success: false, nextAction: "poll" });
  await expect
    .poll(() => scene.recoveryOf(body))
    .toMatchObject({
      state: "queued",
      problem: expect.stringContaining("recover --network base --confirmed 0x"),
    });
  await expectNothingForwarded(value);
});
