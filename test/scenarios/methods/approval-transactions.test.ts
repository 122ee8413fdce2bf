import { setTimeout as sleep } from "node:timers/promises";
import { parseTransaction } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localGifts } from "../../../src/payer/local-chains.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { type Hex, quantity } from "../../../src/protocol/hex.ts";
import { type JsonResponse, requestJson } from "../../../src/util/http-client.ts";
import type { Running } from "../../support/composition.ts";
import { takingOf, value } from "../../support/recovery-scene.ts";
import type { Body } from "../../support/service.ts";
import { forwardingTo, type ReceivedCall, sendJson, startStubNode } from "../../support/stub-node.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * Payments by Permit2 of payers who have not approved it, and send a transaction along that does.
 */

const scene = useRecoveryScene();

type Answer = { success: boolean; errorReason?: string; errorMessage?: string; transaction: Hex };
const answerOf = ({ body }: JsonResponse) => body as Answer;
const settle = async (running: Running, body: Body) => answerOf(await scene.post(running, "settle", body));
/** Asks again where it took too long, as on a busy machine. */
async function settleUntilDecided(running: Running, body: Body): Promise<Answer> {
  for (;;) {
    const answer = await scene.post(running, "settle", body);
    if (answer.status === 200) return answerOf(answer);
  }
}
const verify = async (running: Running, body: Body) => (await scene.post(running, "verify", body)).body;
const paid = () => scene.balanceOf(scene.recipient());
const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/);
const success = { success: true, transaction: hash };
const { address: payer } = testPayers.sponsored;
const sign = (approvalTransaction = {}, terms = {}) =>
  scene.signPermit("sponsored", { approvalTransaction, ...terms });
const transactionsOf = async () =>
  Number(await createLocalRpc(scene.chain.rpcUrl).request("eth_getTransactionCount", payer, "latest"));

test("who has the sponsor's key can spend the coins that lie there, and settle nothing", async () => {
  const running = await scene.startService();
  const release = await scene.holdMining();
  const { answer } = await scene.settleInPool(running, await scene.signPermit("funded"));
  const { request } = createLocalRpc(scene.chain.rpcUrl);
  const { transactions } = Object(await request("eth_getBlockByNumber", "pending", true));
  const { from: operator, to, input: data } = Object(transactions[0]);
  const sponsor = harnessAccounts.sponsor.address;
  const call = (terms: object) => request("eth_call", { gas: "0x7a120", ...terms }, "latest");
  await call({ from: operator, to, data });
  // AccessControlUnauthorizedAccount(address,bytes32)
  await expect(call({ from: sponsor, to, data })).rejects.toThrow("0xe2517d3f");
  const has = BigInt(String(await request("eth_getBalance", sponsor, "latest")));
  const spend = (wei: bigint) => call({ from: sponsor, to: payer, value: `0x${wei.toString(16)}` });
  expect(await spend(has)).toBe("0x");
  await expect(spend(has + 1n)).rejects.toThrow();
  await release();
  expect(answerOf(await answer)).toMatchObject(success);
});

describe.each([
  ["exact, through the contract", {}],
  ["upto, of which a part is taken", { max: 2n * value }],
])("a payment of scheme %s", (_, terms) => {
  test("is verified without anything being sent, and settled after the approval", async () => {
    const running = await scene.startService();
    const body = await sign({}, terms);
    const before = await transactionsOf();
    const asked = "max" in terms ? takingOf(body, terms.max) : body;
    expect(await verify(running, asked)).toMatchObject({ isValid: true });
    expect(await transactionsOf()).toBe(before);
    const [operator, mine] = [await scene.operatorTransactions(), await paid()];
    expect(await settle(running, body)).toMatchObject(success);
    expect(await transactionsOf()).toBe(before + 1);
    expect((await scene.operatorTransactions()) - operator).toBe(1);
    expect((await paid()) - mine).toBe(value);
    expect(await settle(running, body)).toMatchObject({ errorReason: "invalid_transaction_state" });
    await scene.chain.approvePermit2(payer, 0n);
  });
});

/** The approval of a payment, signed again as an older type of transaction; `anywhere`: without a chain id (EIP-155). */
async function signAgain(body: Body, type: "legacy" | "eip2930" | "anywhere"): Promise<Body> {
  const { info } = body.paymentPayload.extensions.erc20ApprovalGasSponsoring;
  const { nonce, to, data, gas, chainId = 0, maxFeePerGas } = parseTransaction(info.signedTransaction);
  const account = privateKeyToAccount(testPayers.sponsored.privateKey);
  const terms = { nonce, to, data, gas, gasPrice: maxFeePerGas };
  info.signedTransaction = await account.signTransaction(
    type === "eip2930"
      ? { ...terms, type, chainId }
      : { ...terms, type: "legacy", ...(type === "legacy" && { chainId }) },
  );
  return body;
}

test.each(["legacy", "eip2930"] as const)("one of type %s is sent too", async (type) => {
  const running = await scene.startService();
  const body = await signAgain(await sign(), type);
  const [before, mine] = [await transactionsOf(), await paid()];
  expect(await verify(running, body)).toMatchObject({ isValid: true });
  expect(await settle(running, body)).toMatchObject(success);
  expect((await transactionsOf()) - before).toBe(1);
  expect((await paid()) - mine).toBe(value);
});

test("one that could be sent on every chain is refused", async () => {
  const running = await scene.startService();
  const body = await signAgain(await sign(), "anywhere");
  const before = await transactionsOf();
  const refusal = { situation: "approval_transaction_unreadable" };
  expect(await verify(running, body)).toMatchObject({ isValid: false, ...refusal });
  expect(await settle(running, body)).toMatchObject({ success: false, ...refusal });
  expect(await transactionsOf()).toBe(before);
});

test("an approval that is not needed is not sent", async () => {
  const running = await scene.startService();
  await scene.chain.approvePermit2(payer, 2n * value);
  const before = await transactionsOf();
  expect(await settle(running, await sign())).toMatchObject(success);
  expect(await transactionsOf()).toBe(before);
  await scene.chain.approvePermit2(payer, 0n);
});

test("an approval of everything serves later payments too, and one that is sent twice is sent once", async () => {
  const running = await scene.startService();
  const before = await transactionsOf();
  const all = { amount: 2n ** 256n - 1n };
  const [one, two] = [await sign(all), await sign(all)];
  const answers = await Promise.all([one, two].map((body) => settle(running, body)));
  expect(answers).toMatchObject([success, success]);
  expect(await settle(running, await scene.signPermit("sponsored"))).toMatchObject(success);
  expect(await transactionsOf()).toBe(before + 1);
  await scene.chain.approvePermit2(payer, 0n);
});

test("nothing is sent for a payment that would be refused", async () => {
  const running = await scene.startService();
  const before = await transactionsOf();
  const refused: readonly [Body, string][] = [
    [await sign({}, { amount: 10n ** 18n }), "permit2_insufficient_balance"],
    [await sign({}, { deadline: 1n }), "permit2_deadline_expired"],
    [await sign({ nonce: before + 1 }), "erc20_approval_broadcast_failed"],
    [await sign({ maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }), "erc20_approval_broadcast_failed"],
    [await sign({ gas: 30_000n }), "erc20_approval_broadcast_failed"],
    [await sign({ amount: 1n }), "erc20_approval_tx_invalid_calldata"],
  ];
  for (const [body, reason] of refused) {
    expect(await verify(running, body)).toMatchObject({ isValid: false, invalidReason: reason });
    expect(await settle(running, body)).toMatchObject({ success: false, errorReason: reason });
  }
  expect(await transactionsOf()).toBe(before);
});

test("where it is not switched on, the payer is told to approve", async () => {
  const running = await scene.startService({ network: { gasSponsoring: [] } });
  const before = await transactionsOf();
  expect(await settle(running, await sign())).toMatchObject({ errorReason: "permit2_allowance_required" });
  expect(await transactionsOf()).toBe(before);
});

test("a node that cannot simulate two transactions leaves it to the state", async () => {
  const running = await scene.startService({
    wrap: {
      chain: (chain) => ({
        ...chain,
        async simulate(transaction, { before, ...options }) {
          if (before === undefined) return chain.simulate(transaction, options);
          const nothing = { to: scene.stranger(), data: "0x", gas: 50_000n } as const;
          return { ...(await chain.simulate(nothing, options)), before: "unknown" };
        },
      }),
    },
  });
  expect(await verify(running, await sign())).toMatchObject({ isValid: true });
  const poor = await sign({}, { amount: 10n ** 18n });
  expect(await settle(running, poor)).toMatchObject({ errorReason: "permit2_insufficient_balance" });
  const before = await paid();
  expect(await settle(running, await sign())).toMatchObject(success);
  expect((await paid()) - before).toBe(value);
});

test("an approval that is mined for another payment while a node answers what decides about it is not taken for a used one", async () => {
  const { request, batch } = createLocalRpc(scene.chain.rpcUrl);
  const node = await startStubNode(forwardingTo(scene.chain.rpcUrl));
  const running = await scene.startService({ network: { rpcUrls: [node.url] } });
  const before = await transactionsOf();
  const body = await sign();
  const { signedTransaction } = Object(body.paymentPayload.extensions?.erc20ApprovalGasSponsoring).info;
  // The calls of a batch do not wait for one another: here the payer's count is answered last.
  const isCount = ({ method, params }: ReceivedCall) =>
    method === "eth_getTransactionCount" && params[0] === payer;
  const answer = async (calls: readonly ReceivedCall[]) => {
    const results = await batch(calls.map(({ method, params }) => [method, ...params]));
    return calls.map(({ id }, index) => ({ jsonrpc: "2.0", id, result: results[index] }));
  };
  let isMined = false;
  node.behave(async (calls, response, text) => {
    const counts = calls.filter(isCount);
    if (isMined || counts.length === 0) return forwardingTo(scene.chain.rpcUrl)(calls, response, text);
    const others = await answer(calls.filter((call) => !isCount(call)));
    await request("eth_sendRawTransaction", signedTransaction);
    await expect.poll(transactionsOf).toBe(before + 1);
    isMined = true;
    sendJson(response, [...others, ...(await answer(counts))]);
  });
  expect(await settle(running, body)).toMatchObject(success);
  expect(isMined).toBe(true);
  await node.stop();
  await scene.chain.approvePermit2(payer, 0n);
});

test("an approval that is not mined in time leaves the payment unsent, and the same payment settles later", async () => {
  const running = await scene.startService({ settleWaitMs: 800 });
  const body = await sign();
  const release = await scene.holdMining();
  const before = await scene.operatorTransactions();
  const { status } = await scene.post(running, "settle", body);
  expect(status).toBe(503);
  await release();
  await sleep(300);
  expect(await scene.operatorTransactions()).toBe(before);
  expect(await settleUntilDecided(running, body)).toMatchObject(success);
});

test("settles that wait for one approval share their looks at the chain, and are so many for each organization", async () => {
  const node = await startStubNode(forwardingTo(scene.chain.rpcUrl));
  const running = await scene.startService({ network: { rpcUrls: [node.url], blockTimeMs: 1_000 } });
  const approval = { amount: 2n ** 256n - 1n };
  const bodies = await Promise.all(Array.from({ length: 20 }, () => sign(approval)));
  const ofRival = await sign(approval);
  const release = await scene.holdMining();
  const answers = bodies.map((body) => scene.post(running, "settle", body));
  const rival = scene.post({ ...running, key: running.rivalKey }, "settle", ofRival);
  await scene.untilInPool(1);
  await sleep(1_000);
  let calls = 0;
  node.behave((received, ...rest) => {
    calls += received.length;
    return forwardingTo(scene.chain.rpcUrl)(received, ...rest);
  });
  await sleep(2_000);
  // 21 settles would make some 500 by themselves.
  expect(calls).toBeLessThan(80);
  await release();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(16);
  expect(statuses.filter((status) => status === 503)).toHaveLength(4);
  for (const [index, body] of bodies.entries()) {
    expect(
      statuses[index] === 200 ? answerOf(await (answers[index] ?? rival)) : await settle(running, body),
    ).toMatchObject(success);
  }
  expect(answerOf(await rival)).toMatchObject(success);
  await node.stop();
  await scene.chain.approvePermit2(payer, 0n);
});

test("another transaction of the payer that takes its place is told, and nothing is paid", async () => {
  const running = await scene.startService();
  const body = await sign();
  await scene.chain.node.request("anvil_impersonateAccount", payer);
  await scene.mine({ from: payer, to: scene.stranger(), data: "0x" });
  expect(await settle(running, body)).toMatchObject({
    ...{ success: false, errorReason: "erc20_approval_broadcast_failed" },
    errorMessage: expect.stringMatching(/has the nonce \d+, and the payer's next one is \d+/),
  });
});

describe("a payer without gas money", () => {
  const { address } = testPayers.unapproved;
  const node = () => createLocalRpc(scene.chain.rpcUrl);
  const countOf = async (account: Hex) =>
    Number(await node().request("eth_getTransactionCount", account, "latest"));
  const gifts = () => countOf(harnessAccounts.sponsor.address);
  const coins = async () => BigInt(String(await node().request("eth_getBalance", address, "latest")));
  const signPoor = (terms = {}) => scene.signPermit("unapproved", { approvalTransaction: terms });
  const missing = { errorReason: "permit2_allowance_required", situation: "approval_gas_missing" };
  async function mineAtBaseFee(wei: bigint): Promise<void> {
    await node().request("anvil_setNextBlockBaseFeePerGas", quantity(wei));
    await node().request("evm_mine");
  }
  beforeEach(() => scene.chain.setBalance(address, 0n));

  test("is given what the approval lacks, and verify gives nothing", async () => {
    const running = await scene.startService();
    const body = await signPoor();
    const [before, mine] = [await gifts(), await paid()];
    expect(await verify(running, body)).toMatchObject({ isValid: true });
    expect(await gifts()).toBe(before);
    expect(await settle(running, body)).toMatchObject(success);
    expect(await gifts()).toBe(before + 1);
    expect((await paid()) - mine).toBe(value);
    expect(await coins()).toBeLessThan(localGifts.each);
  });

  test("is told to approve where the sponsor has nothing, which readiness says", async () => {
    const sponsor = harnessAccounts.sponsor.address;
    await scene.chain.setBalance(sponsor, 0n);
    const running = await scene.startService();
    const { body } = await requestJson(running.url.replace("/v1", "/readyz"));
    expect(body).toMatchObject({
      networks: { base: { ready: true, detail: expect.stringContaining("do not cover one gift") } },
    });
    expect(await settle(running, await signPoor())).toMatchObject(missing);
    await scene.chain.setBalance(sponsor, 10n ** 20n);
  });

  test("gets one gift for a token, however it was spent", async () => {
    const running = await scene.startService();
    expect(await settle(running, await signPoor())).toMatchObject(success);
    await scene.chain.setBalance(address, 0n);
    const before = await gifts();
    const again = await signPoor();
    expect(await verify(running, again)).toMatchObject({ isValid: false, situation: missing.situation });
    expect(await settle(running, again)).toMatchObject(missing);
    expect(await gifts()).toBe(before);
    await scene.chain.setBalance(address, 10n ** 18n);
    expect(await settle(running, again)).toMatchObject(success);
  });

  test("gets one gift for two payments at once, and both settle", async () => {
    const running = await scene.startService();
    const before = await gifts();
    const all = { amount: 2n ** 256n - 1n };
    const bodies = [await signPoor(all), await signPoor(all)];
    const answers = await Promise.all(bodies.map((body) => settle(running, body)));
    expect(answers).toMatchObject([success, success]);
    expect(await gifts()).toBe(before + 1);
    await scene.chain.approvePermit2(address, 0n);
  });

  test.each([
    ["at once", {}, { maxFeePerGas: 10n ** 12n }],
    ["on one day", { gifts: { each: 10n ** 16n, daily: 10n } }, {}],
    ["where nobody gives anything", { gifts: undefined }, {}],
  ])("is given no more than the limit %s", async (_, network, terms) => {
    const running = await scene.startService({ network });
    const before = await gifts();
    const body = await signPoor(terms);
    expect(await verify(running, body)).toMatchObject({ isValid: false, situation: missing.situation });
    expect(await settle(running, body)).toMatchObject(missing);
    expect(await gifts()).toBe(before);
  });

  test.each([
    ["more gas than approvals use", { gas: 150_000n }],
    ["a fee far above that of blocks", { maxFeePerGas: 100n * 10n ** 9n }],
  ])("is given nothing for %s, and may pay for it", async (_, terms) => {
    const running = await scene.startService();
    const before = await gifts();
    const body = await signPoor(terms);
    expect(await verify(running, body)).toMatchObject({ isValid: false, situation: missing.situation });
    expect(await settle(running, body)).toMatchObject(missing);
    expect(await gifts()).toBe(before);
    await scene.chain.setBalance(address, 10n ** 18n);
    expect(await verify(running, body)).toMatchObject({ isValid: true });
    expect(await settle(running, body)).toMatchObject(success);
    expect(await gifts()).toBe(before);
  });

  test("is given what it signed for when the base fee was higher, a few blocks before", async () => {
    const running = await scene.startService();
    const { request } = createLocalRpc(scene.chain.rpcUrl);
    await request("anvil_setNextBlockBaseFeePerGas", "0x2540be400");
    await request("evm_mine");
    const body = await signPoor();
    // The base fee falls by an eighth with each empty block.
    for (let block = 0; block < 6; block++) await request("evm_mine");
    expect(await verify(running, body)).toMatchObject({ isValid: true });
    expect(await settle(running, body)).toMatchObject(success);
  });

  test("gets nothing for a payment that would be refused", async () => {
    const running = await scene.startService();
    const before = await gifts();
    const body = await scene.signPermit("unapproved", { approvalTransaction: {}, amount: 10n ** 18n });
    expect(await settle(running, body)).toMatchObject({ errorReason: "permit2_insufficient_balance" });
    expect(await gifts()).toBe(before);
  });

  test("whose gift is not mined in time is not given another one", async () => {
    const running = await scene.startService({ settleWaitMs: 800 });
    const body = await signPoor();
    const before = await gifts();
    const release = await scene.holdMining();
    expect((await scene.post(running, "settle", body)).status).toBe(503);
    expect((await scene.post(running, "settle", body)).status).toBe(503);
    await release();
    while ((await gifts()) === before) await sleep(50);
    expect(await settleUntilDecided(running, body)).toMatchObject(success);
    expect(await gifts()).toBe(before + 1);
  });

  test("whose gift is mined is not refused for fees that have risen meanwhile", async () => {
    const running = await scene.startService({ settleWaitMs: 800 });
    const fee = 4_000_000_000n;
    await mineAtBaseFee((fee * 3n) / 4n);
    const body = await signPoor({ maxFeePerGas: fee });
    const before = await gifts();
    const release = await scene.holdMining();
    expect((await scene.post(running, "settle", body)).status).toBe(503);
    await release();
    while ((await gifts()) === before) await sleep(50);
    // A block may ask for as much, and the one after it for more.
    await mineAtBaseFee((fee * 15n) / 16n);
    expect(await verify(running, body)).toMatchObject({ isValid: true });
    expect(await settleUntilDecided(running, body)).toMatchObject(success);
    expect(await gifts()).toBe(before + 1);
  });
});
