import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { encodeFunctionData, getAbiItem, numberToHex, toFunctionSelector } from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Running } from "../../../test/support/composition.ts";
import { grantOperator, revokeOperator } from "../../../test/support/grant-operator.ts";
import type { Body } from "../../../test/support/service.ts";
import { useComposition } from "../../../test/support/use-composition.ts";
import type { Chain } from "../../chain/chain.ts";
import { x402FacilitatorAbi } from "../../contracts/x402Facilitator.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { readCodes } from "../../protocol/builder-code.ts";
import { UndeterminedError } from "../../util/errors.ts";
import type { JsonResponse } from "../../util/http-client.ts";

/*
 * The relayer on a chain that does not just mine its transactions.
 */

const composition = useComposition();
// Its time above all: a head ahead of the clock is no head to be ready with.
beforeEach(() => composition.chain.reset());

const request = (method: string, ...params: unknown[]) => composition.chain.node.request(method, ...params);

/** Short, so that waits of some block times are short. */
const quick = () => composition.configuration({ blockTimeMs: 50 });

/** Mines a block every 100 ms, whatever is held, until the returned function is called, which waits for the last block: none comes after it. */
function mineSteadily({ everyMs = 100 } = {}): () => Promise<void> {
  let stopped = false;
  const mining = (async () => {
    while (!stopped) {
      await request("evm_mine").catch(() => {});
      await sleep(everyMs);
    }
  })();
  return () => {
    stopped = true;
    return mining;
  };
}

/** A wrapper of a service's chain, and what resolves when so many payments have been checked on it. */
function countSimulations(count: number) {
  const all = Promise.withResolvers<void>();
  let simulated = 0;
  return {
    done: all.promise,
    chain: (chain: Chain): Chain => ({
      ...chain,
      async simulate(...asked) {
        const simulation = await chain.simulate(...asked);
        if (++simulated === count) all.resolve();
        return simulation;
      },
    }),
  };
}

/** The payment with a builder code of its buyer. */
function withCode(body: Body, code: string): Body {
  return {
    ...body,
    paymentPayload: { ...body.paymentPayload, extensions: { "builder-code": { info: { s: [code] } } } },
  };
}

/** The builder codes of the transaction of a success. */
async function codesOf(answer: unknown) {
  const { input } = Object(await request("eth_getTransactionByHash", Object(answer).transaction));
  return readCodes(input);
}

async function settlementOf(
  running: Running,
  body: Body,
): Promise<{ state: string; failure: string | null; blockNumber: string | null }> {
  const { authorization } = body.paymentPayload.payload;
  const { settlementId } = await import("../../protocol/signed-payment.ts");
  const id = settlementId(8453, composition.chain.asset.address, authorization.from, authorization.nonce);
  const response = await fetch(`${running.url}/settlements/${id}`, {
    headers: { authorization: running.key },
  });
  return (await response.json()) as { state: string; failure: string | null; blockNumber: string | null };
}

describe.each([
  { route: "through the contract", straight: false },
  { route: "straight", straight: true },
])("a transaction $route that is not mined", ({ straight }) => {
  const payment = (validForSeconds?: number) =>
    composition.payment("funded", validForSeconds, 1, { straight });

  test("because the base fee rose above its offer: it is replaced by one that pays more, and settles once", async () => {
    const before = await composition.recipientBalance();
    const transactions = await composition.operatorTransactions();
    const release = await composition.holdMining();
    const running = await composition.start({ network: { ...quick(), builderCode: "bc_own" } });
    composition.proxy.take();
    const settling = composition.post(running, "settle", withCode(await payment(), "bc_buyer"));
    await composition.untilSent();
    await request("anvil_setNextBlockBaseFeePerGas", "0x2540be400");
    await request("evm_mine");
    expect(await composition.operatorTransactions()).toBe(transactions);
    await release();
    const stopMining = mineSteadily();
    const { body } = await settling;
    await stopMining();
    expect(body).toMatchObject({ success: true });
    expect(await codesOf(body)).toEqual({ wallet: "bc_own", services: ["bc_buyer"] });
    expect(await composition.recipientBalance()).toBe(before + 10_000n);
    expect(await composition.operatorTransactions()).toBe(transactions + 1);
  });

  test("until its authorization has expired: a no-op takes its txNonce, and the next payment settles", async () => {
    const { chain } = composition;
    const before = await composition.recipientBalance();
    const transactions = await composition.operatorTransactions();
    const release = await composition.holdMining();
    const running = await composition.start({ network: quick() });
    composition.proxy.take();
    const body = await payment(60);
    const settling = composition.post(running, "settle", body);
    await composition.untilSent();
    await request("anvil_setNextBlockBaseFeePerGas", "0x174876e800");
    await chain.advanceTime(120);
    await release();
    const stopMining = mineSteadily();
    expect((await settling).body).toMatchObject({
      success: false,
      errorReason: "invalid_transaction_state",
      transaction: "",
    });
    expect(await settlementOf(running, body)).toMatchObject({
      state: "failed",
      failure: "the authorization expired before it could be mined",
    });
    const next = await composition.post(running, "settle", await payment());
    await stopMining();
    expect(next.body).toMatchObject({ success: true });
    expect(await composition.recipientBalance()).toBe(before + 10_000n);
    expect(await composition.operatorTransactions()).toBe(transactions + 2);
  });
});

describe("a batch that no node takes, as one that is too large", () => {
  test("is replaced by a no-op, and its payments are sent singly", async () => {
    const before = await composition.recipientBalance();
    const release = await composition.holdMining();
    const largest = 700;
    const log: string[] = [];
    const running = await composition.start({
      network: quick(),
      settleWaitMs: 30_000,
      log,
      wrap: {
        chain: (chain) => ({
          ...chain,
          broadcast: (raws, options) =>
            chain.broadcast(
              raws.filter((raw) => raw.length / 2 <= largest),
              options,
            ),
        }),
      },
    });
    const bodies = await Promise.all(Array.from({ length: 12 }, () => composition.payment()));
    const settling = Promise.all(bodies.map((body) => composition.post(running, "settle", body)));
    await release();
    const stopMining = mineSteadily();
    const answers = await settling;
    await stopMining();
    expect(answers.filter(({ body }) => (body as { success: boolean }).success)).toHaveLength(12);
    expect(log.join("")).toContain("decided nothing about its payments");
    expect(await composition.recipientBalance()).toBe(before + 120_000n);
  });
});

describe("payments that come one after the other", () => {
  test("share a transaction while one is under way, or after several that did; the first waits for none of them", async () => {
    const transactions = await composition.operatorTransactions();
    const release = await composition.holdMining();
    const checks = countSimulations(7);
    // A hundredth of the block time is what they wait for one another: one second and a half.
    const running = await composition.start({
      network: composition.configuration({ blockTimeMs: 150_000 }),
      settleWaitMs: 20_000,
      wrap: checks,
    });
    composition.proxy.take();
    const first = composition.post(running, "settle", await composition.payment());
    await composition.untilSent();
    const bodies = await Promise.all(Array.from({ length: 5 }, () => composition.payment()));
    const others = bodies.map((body) => composition.post(running, "settle", body));
    await composition.untilSent();
    await release();
    const stopMining = mineSteadily();
    for (const { body } of await Promise.all([first, ...others]))
      expect(body).toMatchObject({ success: true });
    expect(await composition.operatorTransactions()).toBe(transactions + 2);

    // Where payments came together, the next may too, to other instances as well: nothing has to be under way.
    const next = composition.post(running, "settle", await composition.payment());
    await checks.done;
    const last = composition.post(running, "settle", await composition.payment());
    for (const { body } of await Promise.all([next, last])) expect(body).toMatchObject({ success: true });
    await stopMining();
    expect(await composition.operatorTransactions()).toBe(transactions + 3);
  });
});

describe("an operator with gas money for a few payments", () => {
  const { address } = harnessAccounts.operator;
  let balance: unknown;
  /** Wei for one gas, at twice the base fee and a tip, as it is offered. */
  let offered: bigint;

  beforeEach(async () => {
    balance = await request("eth_getBalance", address, "latest");
    const { baseFeePerGas } = Object(await request("eth_getBlockByNumber", "latest", false));
    const tip = BigInt(String(await request("eth_maxPriorityFeePerGas")));
    offered = 2n * BigInt(baseFeePerGas) + tip + 1_000_000n;
  });

  afterEach(async () => {
    await request("anvil_setBalance", address, String(balance));
  });

  const leaveGas = (gas: bigint) => request("anvil_setBalance", address, `0x${(gas * offered).toString(16)}`);

  const settleAll = async (running: Running, count: number) => {
    const bodies = await Promise.all(Array.from({ length: count }, () => composition.payment()));
    return Promise.all(bodies.map((body) => settleUntilDecided(running, body)));
  };

  /** Asks again while a transaction is under way, so that a slow machine's answers are those of a fast one. */
  async function settleUntilDecided(running: Running, body: Body): Promise<JsonResponse> {
    const answer = await composition.post(running, "settle", body);
    const isUnderWay = answer.headers["x-settlement-state"] === "pending";
    return isUnderWay ? settleUntilDecided(running, body) : answer;
  }

  test("settles many all the same, a few at a time, and offers no more for want of money", async () => {
    const before = await composition.recipientBalance();
    const log: string[] = [];
    const running = await composition.start({ settleWaitMs: 30_000, log });
    // Forty payments at once would need eleven million.
    await leaveGas(4_000_000n);
    const stopMining = mineSteadily();
    const answers = await settleAll(running, 40);
    await stopMining();
    expect(answers.filter(({ body }) => (body as { success: boolean }).success)).toHaveLength(40);
    expect(await composition.recipientBalance()).toBe(before + 400_000n);
    expect(log.join("")).not.toContain("replacing a transaction");
  });

  test("signs nothing for those that are left when it is used up, however long they have waited", async () => {
    // One payment in each transaction.
    const network = composition.configuration({ maxTransactionCost: 600_000n * offered });
    const checks = countSimulations(40);
    // Long enough for a busy machine to check all of them and to send the first.
    const running = await composition.start({ network, settleWaitMs: 12_000, wrap: checks });
    await leaveGas(1_500_000n);
    const release = await composition.holdMining();
    const settling = settleAll(running, 40);
    // All are checked against the balance as it is before the first is mined.
    await Promise.all([composition.untilSent(), checks.done]);
    await release();
    const stopMining = mineSteadily();
    const answers = await settling;
    await stopMining();
    const refused = answers.filter(({ status }) => status === 503);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(answers.length - refused.length);
    expect(refused).not.toHaveLength(0);
    for (const { body } of refused)
      expect(body).toMatchObject({ detail: expect.stringContaining("nothing was sent") });
  });
});

describe("a txNonce that another program takes", () => {
  test("with the operator's key: the payment goes out with the next, once", async () => {
    const before = await composition.recipientBalance();
    const transactions = await composition.operatorTransactions();
    const release = await composition.holdMining();
    const log: string[] = [];
    // Sixteen block times pass until it is sure enough.
    const running = await composition.start({ network: quick(), settleWaitMs: 25_000, log });
    composition.proxy.take();
    const settling = composition.post(running, "settle", await composition.payment());
    await composition.untilSent();
    await request("anvil_dropAllTransactions");
    const { address } = harnessAccounts.operator;
    await request("anvil_impersonateAccount", address);
    await request("eth_sendTransaction", { from: address, to: address, gas: "0x5208" });
    await request("evm_mine");
    await release();
    const stopMining = mineSteadily();
    expect((await settling).body).toMatchObject({ success: true });
    await stopMining();
    expect(log.join("")).toContain("another program sends with this key");
    expect(await composition.recipientBalance()).toBe(before + 10_000n);
    expect(await composition.operatorTransactions()).toBe(transactions + 2);
  });
});

describe("a transaction whose receipt nodes do not show", () => {
  test("has paid: the payment is a success, although a second transaction for it was reverted", async () => {
    const before = await composition.recipientBalance();
    const transactions = await composition.operatorTransactions();
    let hidden: string | undefined;
    const hiding = (read: Chain["receipts"]): Chain["receipts"] => {
      return async (hashes, options) => {
        hidden ??= hashes[0];
        const receipts = await read(hashes, options);
        return receipts.map((receipt) => (receipt?.hash === hidden ? null : receipt));
      };
    };
    const running = await composition.start({
      // 900 blocks pass until the first transaction counts as another sender's.
      network: composition.configuration({ blockTimeMs: 3 }),
      settleWaitMs: 40_000,
      wrap: {
        chain: (chain) => ({
          ...chain,
          receipts: hiding(chain.receipts),
          endpoints: () => chain.endpoints().map((view) => ({ ...view, receipts: hiding(view.receipts) })),
        }),
      },
    });
    const stopMining = mineSteadily();
    const body = await composition.payment();
    const answer = await composition.post(running, "settle", body);
    await stopMining();
    expect(answer.body).toMatchObject({ success: true, transaction: hidden });
    expect(await settlementOf(running, body)).toMatchObject({ state: "settled", failure: null });
    expect(await composition.recipientBalance()).toBe(before + 10_000n);
    expect(await composition.operatorTransactions()).toBe(transactions + 2);
  });
});

describe("a claim whose commit loses its answer", () => {
  const lost = () => new UndeterminedError("the database did not tell");
  const post = async (claim: (claim: Ledger["claims"]["claim"]) => Ledger["claims"]["claim"]) => {
    const running = await composition.start({
      wrap: {
        ledger: (ledger) => ({ ...ledger, claims: { ...ledger.claims, claim: claim(ledger.claims.claim) } }),
      },
    });
    return composition.post(running, "settle", await composition.payment());
  };

  test("is sent and answered as if nothing had happened, when it was kept", async () => {
    const before = await composition.recipientBalance();
    const answer = await post((claim) => async (...args) => {
      await claim(...args);
      throw lost();
    });
    expect(answer.body).toMatchObject({ success: true });
    expect(await composition.recipientBalance()).toBe(before + 10_000n);
  });

  test("is no verdict when it was not", async () => {
    const before = await composition.operatorTransactions();
    const answer = await post(() => () => Promise.reject(lost()));
    expect(answer).toMatchObject({
      status: 503,
      body: { detail: "The payment could not be recorded; nothing was sent" },
    });
    expect(await composition.operatorTransactions()).toBe(before);
  });
});

test("a node that stays behind what was settled is no reason to call a payer poor", async () => {
  const before = await composition.recipientBalance();
  let isBehind = true;
  const running = await composition.start({
    wrap: {
      ledger: (ledger) => ({
        ...ledger,
        claims: {
          ...ledger.claims,
          claim: async (operator, requests, sign) =>
            isBehind
              ? { outcomes: requests.map(() => "stale_balance" as const), attempt: null }
              : ledger.claims.claim(operator, requests, sign),
        },
      }),
    },
  });
  const body = await composition.payment();
  const answer = await composition.post(running, "settle", body);
  expect(answer.status).toBe(503);
  expect(answer.body).toMatchObject({ success: false, errorReason: "unexpected_settle_error" });
  isBehind = false;
  expect((await composition.post(running, "settle", body)).body).toMatchObject({ success: true });
  expect(await composition.recipientBalance()).toBe(before + 10_000n);
});

describe("blocks that vanish", () => {
  test.each([1, 2, 3])(
    "reorg of depth %i before the success is deep enough: settled once all the same",
    async (depth) => {
      const before = await composition.recipientBalance();
      const running = await composition.start({
        network: composition.configuration({ confirmations: depth + 2 }),
        settleWaitMs: 20_000,
      });
      composition.proxy.take();
      const body = await composition.payment();
      const settling = composition.post(running, "settle", body);
      await composition.untilSent();
      for (let mined = 1; mined < depth; mined++) await request("evm_mine");
      await new Promise((resolve) => setTimeout(resolve, 150));
      await request("anvil_reorg", depth, []);
      const stopMining = mineSteadily();
      const answer = await settling;
      await stopMining();
      expect(answer.body).toMatchObject({ success: true });
      expect(await composition.recipientBalance()).toBe(before + 10_000n);
      expect(await settlementOf(running, body)).toMatchObject({ state: "settled" });
    },
  );

  test("a payer of exactly two payments can make the second while the first waits for its depth", async () => {
    const { chain } = composition;
    await chain.fund(
      testPayers.empty.address,
      20_000n - (await composition.balanceOf(testPayers.empty.address)),
    );
    const running = await composition.start({
      network: composition.configuration({ confirmations: 3 }),
      settleWaitMs: 20_000,
    });
    const first = composition.post(running, "settle", await composition.payment("empty"));
    while ((await composition.balanceOf(testPayers.empty.address)) > 10_000n) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const second = composition.post(running, "settle", await composition.payment("empty"));
    const stopMining = mineSteadily();
    expect((await first).body).toMatchObject({ success: true });
    expect((await second).body).toMatchObject({ success: true });
    await stopMining();
  });
});

describe("blocks that vanish after the success", () => {
  const untilState = (running: Running, body: Body, state: string) =>
    expect.poll(() => settlementOf(running, body)).toMatchObject({ state });

  /** Settles a payment by a service that has ended when the block vanishes. Nothing is mined from then on. */
  async function settleIntoVanishedBlock() {
    const network = composition.configuration({ confirmations: 2 });
    const first = await composition.start({ network, settleWaitMs: 20_000 });
    const stopMining = mineSteadily();
    const body = await composition.payment();
    expect((await composition.post(first, "settle", body)).body).toMatchObject({ success: true });
    await stopMining();
    const { blockNumber } = await settlementOf(first, body);
    await composition.stop(first);
    const release = await composition.holdMining();
    await request("anvil_reorg", Number(await request("eth_blockNumber")) - Number(blockNumber) + 1, []);
    await request("anvil_dropAllTransactions");
    return { network, body, release };
  }

  test("a reorganization as deep as the confirmations: undecided at once, mined again, and paid once", async () => {
    const { chain } = composition;
    const before = await composition.recipientBalance();
    const log: string[] = [];
    const network = composition.configuration({ confirmations: 2 });
    const running = await composition.start({ network, settleWaitMs: 20_000, log });
    const stopMining = mineSteadily();
    const bodies = await Promise.all(Array.from({ length: 3 }, () => composition.payment()));
    const answers = await Promise.all(bodies.map((body) => composition.post(running, "settle", body)));
    expect(answers.map(({ body }) => (body as { success: boolean }).success)).toEqual([true, true, true]);
    await stopMining();

    const release = await composition.holdMining();
    const reached = Number(await request("eth_blockNumber"));
    const settlements = await Promise.all(bodies.map((body) => settlementOf(running, body)));
    const lost = reached - Math.min(...settlements.map(({ blockNumber }) => Number(blockNumber))) + 1;
    await request("anvil_reorg", lost, []);
    await request("anvil_dropAllTransactions");
    expect(await composition.recipientBalance()).toBe(before);
    for (const body of bodies) {
      await untilState(running, body, "submitted");
      expect(await settlementOf(running, body)).toMatchObject({
        failure: expect.stringContaining("vanished"),
        blockNumber: null,
        concludedAt: null,
      });
    }
    const ready = await fetch(`${running.url.replace("/v1", "")}/readyz`);
    expect(await ready.json()).toMatchObject({
      networks: { base: { ready: false, detail: expect.stringContaining("vanished") } },
    });
    expect(log.join("")).toContain("vanished from the chain");

    await release();
    const mineAgain = mineSteadily();
    for (const body of bodies) await untilState(running, body, "settled");
    const next = await composition.post(running, "settle", await composition.payment());
    expect(next.body).toMatchObject({ success: true });
    // The success was handed over before: the payment sent again gets no second one.
    for (const body of bodies) {
      expect((await composition.post(running, "settle", body)).body).toMatchObject({ success: false });
    }
    await mineAgain();
    expect(await composition.recipientBalance()).toBe(before + 40_000n);
    expect(await composition.balanceOf(chain.facilitatorContract)).toBe(0n);
    const wellAgain = async () => (await fetch(`${running.url.replace("/v1", "")}/readyz`)).json();
    await expect.poll(wellAgain).toMatchObject({ status: "ready" });
  });

  test("while no service ran: the next one sends what was paid before", async () => {
    const before = await composition.recipientBalance();
    const { network, body, release } = await settleIntoVanishedBlock();
    expect(await composition.recipientBalance()).toBe(before);

    const second = await composition.start({ network, settleWaitMs: 20_000 });
    await release();
    const mineAgain = mineSteadily();
    const next = await composition.post(second, "settle", await composition.payment());
    expect(next.body).toMatchObject({ success: true });
    await untilState(second, body, "settled");
    await mineAgain();
    expect(await composition.recipientBalance()).toBe(before + 20_000n);
  });

  test("and another transaction has the txNonce, before later ones are mined: it is paid with the next txNonce", async () => {
    const before = await composition.recipientBalance();
    const { network, body } = await settleIntoVanishedBlock();
    const { address } = harnessAccounts.operator;
    await request("anvil_impersonateAccount", address);
    await request("eth_sendTransaction", { from: address, to: address, gas: "0x5208" });
    await request("evm_mine");

    // Ends before its first look at what was decided.
    const second = await composition.start({
      network: { ...network, blockTimeMs: 2_000 },
      settleWaitMs: 20_000,
    });
    const mineAgain = mineSteadily();
    const next = await composition.post(second, "settle", await composition.payment());
    expect(next.body).toMatchObject({ success: true });
    await composition.stop(second);
    expect(await composition.recipientBalance()).toBe(before + 10_000n);

    const third = await composition.start({
      network: { ...quick(), confirmations: 2 },
      settleWaitMs: 20_000,
    });
    await untilState(third, body, "submitted");
    await untilState(third, body, "settled");
    await mineAgain();
    expect(await composition.recipientBalance()).toBe(before + 20_000n);
  });

  test("with the transaction of a stranger on the operator's key: a no-op fills its txNonce", async () => {
    const before = await composition.recipientBalance();
    const transactions = await composition.operatorTransactions();
    const release = await composition.holdMining();
    const network = { ...quick(), confirmations: 2 };
    const running = await composition.start({ network, settleWaitMs: 25_000 });
    composition.proxy.take();
    const body = await composition.payment();
    const settling = composition.post(running, "settle", body);
    await composition.untilSent();
    await request("anvil_dropAllTransactions");
    const { address } = harnessAccounts.operator;
    await request("anvil_impersonateAccount", address);
    // With the txNonce, and a price that replaces: the service may have sent its own again meanwhile.
    const [nonce, gasPrice] = [numberToHex(transactions), numberToHex(10n ** 12n)];
    await request("eth_sendTransaction", { from: address, to: address, gas: "0x5208", nonce, gasPrice });
    await request("evm_mine");
    const strangersBlock = Number(await request("eth_blockNumber"));
    await release();
    // Few blocks: anvil can take back only those whose states it keeps.
    const stopMining = mineSteadily({ everyMs: 200 });
    expect((await settling).body).toMatchObject({ success: true });
    await stopMining();

    // The service sends again what vanished, which would be mined before it is looked for.
    const goOn = await composition.holdMining();
    await request("anvil_reorg", Number(await request("eth_blockNumber")) - strangersBlock + 1, []);
    await request("anvil_dropAllTransactions");
    expect(await composition.operatorTransactions()).toBe(transactions);
    await goOn();
    const mineAgain = mineSteadily();
    const next = await composition.post(running, "settle", await composition.payment());
    expect(next.body).toMatchObject({ success: true });
    await untilState(running, body, "settled");
    await mineAgain();
    await stopMining();
    expect(await composition.operatorTransactions()).toBe(transactions + 3);
    expect(await composition.recipientBalance()).toBe(before + 20_000n);
  });
});

describe("a batch that reverts as a whole", () => {
  /** The calldata of all that waits to be mined. */
  async function inPool(): Promise<string[]> {
    const { pending } = Object(await request("txpool_content"));
    const sent: { input: string }[] = Object.values(pending).flatMap((byNonce) =>
      Object.values(Object(byNonce)),
    );
    return sent.map(({ input }) => input);
  }

  const isIn = (inputs: readonly string[]) => (body: Body) => {
    const nonce = body.paymentPayload.payload.authorization.nonce.slice(2);
    return inputs.some((input) => input.includes(nonce));
  };

  /** Settles at once, in a block whose first transaction pauses the contract; how many payments travelled alone. */
  async function settleIntoRevert(running: Running, bodies: readonly Body[]) {
    const { chain } = composition;
    composition.proxy.take();
    const settling = Promise.all(bodies.map((body) => composition.post(running, "settle", body)));
    await expect.poll(async () => bodies.filter(isIn(await inPool())).length).toBe(bodies.length);
    const settleSelector = toFunctionSelector(getAbiItem({ abi: x402FacilitatorAbi, name: "settle" }));
    const alone = (await inPool()).filter((input) => input.startsWith(settleSelector)).length;

    // The pauser's transaction pays more for its place, so that the batch behind it finds the contract paused.
    const { address } = harnessAccounts.pauser;
    await request("anvil_impersonateAccount", address);
    const call = (functionName: "pause" | "unpause") => ({
      from: address,
      to: chain.facilitatorContract,
      data: encodeFunctionData({ abi: x402FacilitatorAbi, functionName }),
      gas: "0x186a0",
      maxPriorityFeePerGas: "0x12a05f200",
      maxFeePerGas: "0x4a817c800",
    });
    await request("eth_sendTransaction", call("pause"));
    await request("evm_mine");
    await request("eth_sendTransaction", call("unpause"));
    await request("evm_mine");
    return { settling, alone };
  }

  test("hurts none of its payments: they are sent again, each for itself", async () => {
    const before = await composition.recipientBalance();
    const release = await composition.holdMining();
    const running = await composition.start({ settleWaitMs: 20_000 });
    const payments = await Promise.all(Array.from({ length: 6 }, () => composition.payment()));
    const bodies = payments.map((body) => withCode(body, "bc_buyer"));
    const { settling, alone } = await settleIntoRevert(running, bodies);
    await release();

    const answers = await settling;
    for (const { body } of answers) {
      if (Object(body).success) expect(await codesOf(body)).toEqual({ services: ["bc_buyer"] });
    }
    // A payment that happened to travel alone is reverted for itself; those in a batch are not.
    const settled = answers.filter(({ body }) => (body as { success: boolean }).success).length;
    expect(settled).toBe(bodies.length - alone);
    expect(settled).toBeGreaterThan(0);
    expect(await composition.recipientBalance()).toBe(before + BigInt(settled) * 10_000n);
  });

  test("and the process ends while one is left to be sent: the next one sends it, and calls none failed", async () => {
    const before = await composition.recipientBalance();
    const release = await composition.holdMining();
    let left = 0;
    const payments = 6;
    const checks = countSimulations(payments);
    const dying = await composition.start({
      wrap: {
        ...checks,
        ledger: (ledger) => ({
          ...ledger,
          claims: {
            ...ledger.claims,
            // The first payment leaves alone: the others must wait behind it, or none of them shares a transaction.
            async claim(...claimed) {
              await checks.done;
              for (let turn = 0; turn < 100; turn++) await nextTurn();
              return ledger.claims.claim(...claimed);
            },
            async redrive(from, ids, sign) {
              const open = await ledger.claims.openAttempts(from.chainId, from.operator);
              const inBatch = open.find(({ attempt }) => attempt.txNonce === from.txNonce);
              left = inBatch?.settlements.length ?? 0;
              if (left === 1) throw new UndeterminedError("the process is about to end");
              return ledger.claims.redrive(from, ids, sign);
            },
          },
        }),
      },
    });
    const bodies = await Promise.all(Array.from({ length: payments }, () => composition.payment()));
    const { settling, alone } = await settleIntoRevert(dying, bodies);
    await release();
    await expect.poll(() => left).toBe(1);
    await composition.stop(dying);
    await settling;

    const next = await composition.start({ settleWaitMs: 20_000 });
    const states = async () =>
      (await Promise.all(bodies.map((body) => settlementOf(next, body)))).map(({ state }) => state);
    await expect.poll(states).not.toContain("submitted");
    const settled = (await states()).filter((state) => state === "settled").length;
    expect(settled).toBe(bodies.length - alone);
    expect(await composition.recipientBalance()).toBe(before + BigInt(settled) * 10_000n);
  });
});

describe("two operators", () => {
  test.each([
    ["the first", "no gas money"],
    ["the second", "no gas money"],
    ["the first", "without OPERATOR_ROLE"],
    ["the second", "without OPERATOR_ROLE"],
  ])(
    "of which %s cannot settle (%s): the other one does, at once, and the log says so",
    async (which, problem) => {
      const { chain } = composition;
      const second = harnessAccounts.recoverer;
      await grantOperator(chain, second.address);
      const { address: bad } = which === "the first" ? harnessAccounts.operator : second;
      const before = await composition.recipientBalance();
      const log: string[] = [];
      const running = await composition.start({
        settleWaitMs: 20_000,
        otherOperators: [second.privateKey],
        log,
      });
      const balance = String(await request("eth_getBalance", bad, "latest"));
      if (problem === "no gas money") await request("anvil_setBalance", bad, "0x0");
      else await revokeOperator(chain, bad);
      try {
        for (const count of [60, 4]) {
          const bodies = await Promise.all(Array.from({ length: count }, () => composition.payment()));
          // Not all at once, so that both have something to do.
          const pay = async (body: Body, index: number) => {
            await new Promise((resolve) => setTimeout(resolve, index * 10));
            expect((await composition.post(running, "verify", body)).body).toMatchObject({ isValid: true });
            return composition.post(running, "settle", body);
          };
          for (const { body } of await Promise.all(bodies.map(pay))) {
            expect(body).toMatchObject({ success: true });
          }
        }
      } finally {
        await request("anvil_setBalance", bad, balance);
        if (problem !== "no gas money") await grantOperator(chain, bad);
      }
      expect(log.filter((line) => line.includes("an operator cannot settle"))).toHaveLength(1);
      expect(await composition.recipientBalance()).toBe(before + 640_000n);
    },
  );

  test("share the payments, and each uses its own txNonces", async () => {
    const { chain } = composition;
    const second = harnessAccounts.recoverer;
    await grantOperator(chain, second.address);

    const before = await composition.recipientBalance();
    const running = await composition.start({ settleWaitMs: 20_000, otherOperators: [second.privateKey] });
    const bodies = await Promise.all(Array.from({ length: 60 }, () => composition.payment()));
    const answers = await Promise.all(bodies.map((body) => composition.post(running, "settle", body)));
    expect(answers.filter(({ body }) => (body as { success: boolean }).success)).toHaveLength(60);
    expect(await composition.recipientBalance()).toBe(before + 600_000n);
    expect(Number(await request("eth_getTransactionCount", second.address, "latest"))).toBeGreaterThan(0);
    const supported = await fetch(`${running.url}/supported`);
    expect(await supported.json()).toMatchObject({
      signers: { "eip155:*": [harnessAccounts.operator.address, second.address] },
    });
  });
});
