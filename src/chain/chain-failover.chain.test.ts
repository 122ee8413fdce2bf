import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Anvil, startAnvil } from "../../test/support/anvil.ts";
import { deployContracts, type TestDeployment } from "../../test/support/deployment.ts";
import { altering, misbehaviours } from "../../test/support/misbehaviour.ts";
import { createRandom } from "../../test/support/random.ts";
import { noteRequests } from "../../test/support/request-endings.ts";
import { simulateSettle } from "../../test/support/simulate-settle.ts";
import { forwardingTo, type StubNode, startStubNode } from "../../test/support/stub-node.ts";
import { exactEip3009Settling } from "../methods/exact-eip3009/on-chain/eip3009-settling.ts";
import { diagnose } from "../methods/exact-eip3009/on-chain/eip3009-state.ts";
import { settleTransaction } from "../methods/exact-eip3009/on-chain/eip3009-transaction.ts";
import type { SettleCall } from "../methods/on-chain/settling.ts";
import type { Hex } from "../protocol/hex.ts";
import { UndeterminedError } from "../util/errors.ts";
import type { Chain } from "./chain.ts";
import { createChain } from "./create-chain.ts";
import { estimateFees } from "./fees.ts";
import { createLocalSigner } from "./signing/local-signer.ts";

/*
 * A chain behind two endpoints: what a payment meets when one of them goes wrong.
 */

const random = createRandom();

let deployment: TestDeployment;
let preferred: StubNode;
let second: StubNode;
let chain: Chain;
let endings: () => string[];

beforeAll(async () => {
  deployment = await deployContracts();
});
afterAll(() => deployment.stop());

let snapshot: Hex;
beforeEach(async () => {
  snapshot = await deployment.snapshot();
  preferred = await startStubNode(forwardingTo(deployment.url));
  second = await startStubNode(forwardingTo(deployment.url));
  ({ chain, endings } = open([preferred.url, second.url]));
});
afterEach(async () => {
  chain.close();
  await Promise.all([preferred.stop(), second.stop(), deployment.revert(snapshot)]);
});

/** A chain, and how the newest request to each of its endpoints ended. */
function open(rpcUrls: readonly [string, ...string[]]) {
  const { observer, endings } = noteRequests();
  const opened = createChain({
    network: { ...deployment.network, rpcUrls },
    operator: deployment.operator,
    timeoutMs: 4_000,
    pace: { passOverMs: 500, probeMs: 30, firstPauseMs: 10, longestPauseMs: 60, slowMs: 5_000 },
    observer,
  });
  return { chain: opened, endings };
}

/** Looks again and again, as long as it takes on a busy machine. */
const eventually = <T>(look: () => T) => expect.poll(look, { interval: 5 });
const untilHealthy = () => eventually(() => endings()).toEqual(["well", "well"]);

async function sign(call: SettleCall) {
  const signer = createLocalSigner(deployment.operatorKey);
  return signer.signTransaction({
    chainId: deployment.network.chainId,
    nonce: await chain.transactionCount(signer.address),
    ...settleTransaction([call], deployment.network),
    ...estimateFees(await chain.head(), deployment.network),
  });
}

/** Pays through the chain from the check to the proof. */
async function settle(call: SettleCall): Promise<boolean | undefined> {
  const { revert } = await simulateSettle(chain, call, { withFunds: true });
  expect(revert).toBeUndefined();
  const { raw, hash } = await sign(call);
  await chain.broadcast([raw]);
  await eventually(async () => (await chain.receipts([hash]))[0]).toBeTruthy();
  const [receipt] = await chain.receipts([hash]);
  if (!receipt) return undefined;
  return exactEip3009Settling.prove(receipt, deployment.network).find(call)?.settled;
}

test.each(random.shuffle(Object.entries(misbehaviours)))(
  `a payment settles, and its transaction is mined once, in spite of %s (seed ${random.seed})`,
  async (_, { of }) => {
    const well = forwardingTo(deployment.url);
    await chain.head();
    await deployment.mine(10);
    await untilHealthy();
    const signer = createLocalSigner(deployment.operatorKey);
    const before = await chain.transactionCount(signer.address);
    // It goes wrong somewhere along the way, and comes back somewhere later.
    const from = random.between(0, 5);
    const to = from + random.between(1, 12);
    let request = 0;
    preferred.behave((calls, response, body) => {
      const isWrong = request >= from && request < to;
      request++;
      return (isWrong ? of(well) : well)(calls, response, body);
    });
    expect(await settle(await deployment.pay()), `seed ${random.seed}`).toBe(true);
    expect(await chain.transactionCount(signer.address)).toBe(before + 1);
  },
);

test("a broadcast whose answer was lost goes to the other endpoint too, and is mined once", async () => {
  const call = await deployment.pay();
  const { raw, hash } = await sign(call);
  const well = forwardingTo(deployment.url);
  preferred.behave(async (calls, response, body) => {
    if (!calls.some(({ method }) => method === "eth_sendRawTransaction")) return well(calls, response, body);
    await fetch(deployment.url, { method: "POST", body, headers: { "content-type": "application/json" } });
    response.destroy();
  });
  await chain.broadcast([raw]);
  await eventually(async () => (await chain.receipts([hash]))[0]?.succeeded).toBe(true);
  const sent = [preferred, second].map(({ batches }) =>
    batches.flat().filter(({ method }) => method === "eth_sendRawTransaction"),
  );
  expect(sent.map((calls) => calls.map(({ params }) => params))).toEqual([[[raw]], [[raw]]]);
});

test("a payment costs a verify one request, and a settle two before its receipt, with several endpoints too", async () => {
  await chain.head();
  await untilHealthy();
  const call = await deployment.pay();
  const { raw } = await sign(call);
  preferred.batches.length = 0;
  await simulateSettle(chain, call, { withFunds: false });
  await simulateSettle(chain, call, { withFunds: true });
  await chain.broadcast([raw]);
  const isProbe = (methods: string) =>
    methods.split(",").sort().join() === "eth_chainId,eth_getBlockByNumber";
  const asked = preferred.batches.map((batch) => batch.map(({ method }) => method).join());
  expect(asked.filter((methods) => !isProbe(methods))).toEqual([
    "eth_getBlockByNumber,eth_call",
    "eth_getBlockByNumber,eth_call,eth_call,eth_getBalance,eth_maxPriorityFeePerGas",
    "eth_sendRawTransaction",
  ]);
});

describe("a node that stands still", () => {
  let still: Anvil;
  let call: SettleCall;
  beforeEach(async () => {
    call = await deployment.pay();
    const { number } = await deployment.newestBlock();
    // Its chain ends where the payment is not settled yet.
    still = await startAnvil(deployment.network.chainId, [
      "--fork-url",
      deployment.url,
      "--fork-block-number",
      `${number}`,
      "--no-storage-caching",
      "--no-mining",
    ]);
  });
  afterEach(() => still.stop());

  test("keeps no payment from settling, and is not asked about it afterwards, though it is preferred", async () => {
    const { chain: alone } = open([still.url]);
    const { chain: live } = open([deployment.url]);
    // It reads what it needs of the state while the other node still has it.
    await simulateSettle(alone, call, { withFunds: false });
    chain.close();
    ({ chain, endings } = open([still.url, deployment.url]));
    await chain.head();
    await untilHealthy();
    const { raw, hash } = await sign(call);
    // It takes the transaction and keeps it for itself.
    await chain.broadcast([raw]);
    expect(await live.receipts([hash])).toEqual([null]);
    await chain.broadcast([raw], { everywhere: true });
    await eventually(async () => (await live.receipts([hash]))[0]?.succeeded).toBe(true);
    await deployment.mine(10);
    await eventually(() => endings()).toEqual(["lagging", "well"]);

    expect((await simulateSettle(alone, call, { withFunds: false })).revert).toBeUndefined();
    const { number: newest } = await live.head();
    for (let time = 0; time < 20; time++) {
      const { head, revert } = await simulateSettle(chain, call, { withFunds: true });
      expect(revert).toEqual({ kind: "error", message: "FiatTokenV2: authorization is used or canceled" });
      expect(head.number).toBe(newest);
      expect((await diagnose(chain, call)).authorizationUsed).toBe(true);
    }
    for (const each of [alone, live]) each.close();
  });

  test("gives no verdict when it is the last one left", async () => {
    const proxy = await startStubNode(forwardingTo(deployment.url));
    chain.close();
    ({ chain, endings } = open([proxy.url, still.url]));
    await settle(call);
    await deployment.mine(10);
    expect((await simulateSettle(chain, call, { withFunds: false })).revert).toBeDefined();
    await proxy.stop();
    for (const ask of [
      () => simulateSettle(chain, call, { withFunds: false }),
      () => diagnose(chain, call),
      () => exactEip3009Settling.isUsed(chain, call.payment),
      () => chain.transactionCount(deployment.operator),
      () => chain.askWallet(call.payment.payer, `0x${"12".repeat(32)}`, call.payment.signature),
      () => chain.head(),
    ]) {
      await expect(ask()).rejects.toThrow(UndeterminedError);
    }
    expect(endings()).toEqual(["connection", "lagging"]);
  });
});

describe("endpoints of other chains", () => {
  const ofChain = (chainId: string) => altering(forwardingTo(deployment.url), "eth_chainId", () => chainId);

  test("are found out on the first request, and never asked when there is no other", async () => {
    preferred.behave(ofChain("0xa"));
    second.behave(ofChain("0x89"));
    await expect(chain.head()).rejects.toMatchObject({
      name: UndeterminedError.name,
      hints: [
        "RPC endpoint 1 of 2 of base: serves chain 10, not 8453",
        "RPC endpoint 2 of 2 of base: serves chain 137, not 8453",
      ],
    });
    await expect(simulateSettle(chain, await deployment.pay(), { withFunds: false })).rejects.toThrow(
      UndeterminedError,
    );
  });

  test("do not keep the right one from being asked", async () => {
    preferred.behave(ofChain("0xa"));
    expect((await chain.head()).number).toBeTypeOf("bigint");
    expect(endings()).toEqual(["wrong_chain", "well"]);
    expect(chain.endpoints()[0]?.endpoint).toBe("2");
  });

  test("are not told from others where there is only one, so that the inspection of the network can name it", async () => {
    preferred.behave(ofChain("0xa"));
    const only = open([preferred.url]);
    expect((await only.chain.head()).number).toBeTypeOf("bigint");
    expect(only.endings()).toEqual(["well"]);
    only.chain.close();
  });
});
