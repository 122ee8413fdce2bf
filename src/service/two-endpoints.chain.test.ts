import { afterAll, beforeAll, describe, type TestContext, test } from "vitest";
import { type Composition, compose } from "../../test/support/composition.ts";
import { grantOperator } from "../../test/support/grant-operator.ts";
import { accountOf, keyOf } from "../../test/support/key-accounts.ts";
import { altering } from "../../test/support/misbehaviour.ts";
import { type Behaviour, forwardingTo, type StubNode, startStubNode } from "../../test/support/stub-node.ts";
import { createLocalSigner } from "../chain/signing/local-signer.ts";

/*
 * The service's answers when its endpoints disagree about a payment. Tests that mostly wait run at
 * the same time, each with a service and an operator of its own.
 */

describe("with two endpoints", () => {
  let whole: Composition;
  let operators = 0;
  let granted = Promise.resolve();
  beforeAll(async () => {
    whole = await compose();
  });
  afterAll(() => whole.close());

  /** For one test, with a database and an operator of its own. */
  async function composeOne({ onTestFinished }: TestContext): Promise<Composition> {
    const composition = await compose(whole.chain);
    const operator = `operator ${++operators}`;
    const { address } = accountOf(operator);
    // One after the other: of two that the admin sends at once, one has the other's nonce.
    granted = granted.then(() => grantOperator(whole.chain, address));
    await granted;
    await whole.chain.setBalance(address, 10n ** 20n);
    await composition.openDirectory();
    onTestFinished(async () => {
      await composition.stopAll();
      await composition.close();
    });
    const signer = createLocalSigner(keyOf(operator));
    return { ...composition, start: (options) => composition.start({ signer, ...options }) };
  }

  /** A node that forwards everything, and says of every transaction that it was reverted. */
  async function startLiar(): Promise<StubNode> {
    const { rpcUrl } = whole.chain;
    const reverted = (receipt: unknown) => receipt && { ...receipt, status: "0x0", logs: [] };
    const lying = altering(forwardingTo(rpcUrl), "eth_getTransactionReceipt", reverted);
    return startStubNode(altering(lying, "eth_sendRawTransactionSync", reverted));
  }

  test.for([0, 1])(
    "a payment is not called failed because endpoint %i says so alone, and is settled once they agree",
    async (place, context) => {
      const { expect } = context;
      const composition = await composeOne(context);
      const liar = await startLiar();
      const rpcUrls = [composition.chain.rpcUrl, composition.chain.rpcUrl];
      rpcUrls[place] = liar.url;
      const log: string[] = [];
      const service = await composition.start({
        network: composition.configuration({ rpcUrls: [rpcUrls[0] ?? "", rpcUrls[1] ?? ""] }),
        settleWaitMs: 1_500,
        log,
      });
      const body = await composition.payment();
      const settle = () => composition.post(service, "settle", body);
      if (place === 0) {
        const answer = await settle();
        expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 503 });
        await expect
          .poll(() => log.join(""))
          .toContain("RPC endpoints say different things about a transaction");
        expect(await settle()).toMatchObject({ status: 503, body: { success: false, nextAction: "poll" } });
        liar.behave(forwardingTo(composition.chain.rpcUrl));
      }
      let answer = await settle();
      while (answer.status === 503) answer = await settle();
      expect(answer.body).toMatchObject({ success: true });
      await liar.stop();
    },
  );

  const ofAnotherChain: Behaviour = (...request) =>
    altering(forwardingTo(whole.chain.rpcUrl), "eth_chainId", () => "0x2a")(...request);

  test.concurrent.for<[string, Behaviour]>([
    ["is down", (_, response) => void response.destroy()],
    ["is rate-limited", (_, response) => void response.writeHead(429, { "retry-after": "30" }).end()],
    ["serves another chain", ofAnotherChain],
  ])(
    "a payment is not called failed on the word of the first while the second %s",
    async ([, silent], context) => {
      const { expect } = context;
      const composition = await composeOne(context);
      const liar = await startLiar();
      const second = await startStubNode(silent);
      const service = await composition.start({
        network: composition.configuration({ rpcUrls: [liar.url, second.url] }),
        settleWaitMs: 6_000,
      });
      const body = await composition.payment();
      const settle = () => composition.post(service, "settle", body);
      // Before it is sent, the wait of a busy machine may be over.
      await expect.poll(settle).toMatchObject({ status: 503, body: { success: false, nextAction: "poll" } });
      // It was mined: the honest word of both makes it a success.
      liar.behave(forwardingTo(composition.chain.rpcUrl));
      second.behave(forwardingTo(composition.chain.rpcUrl));
      await expect.poll(settle).toMatchObject({ body: { success: true } });
      await Promise.all([liar.stop(), second.stop()]);
    },
  );

  test.concurrent.for<[string, Behaviour]>([
    [
      "does not have it",
      (...request) =>
        altering(forwardingTo(whole.chain.rpcUrl), "eth_getTransactionReceipt", () => null)(...request),
    ],
    ["serves another chain", ofAnotherChain],
  ])(
    "a receipt that the first may have forged is no success while the second %s",
    async ([, behaviour], context) => {
      const { expect } = context;
      const composition = await composeOne(context);
      const { rpcUrl } = composition.chain;
      const forger = await startStubNode(forwardingTo(rpcUrl));
      const second = await startStubNode(behaviour);
      const service = await composition.start({
        network: composition.configuration({ rpcUrls: [forger.url, second.url], successEndpoints: 2 }),
        settleWaitMs: 1_500,
      });
      const body = await composition.payment();
      const settle = () => composition.post(service, "settle", body);
      // Before it is sent, the wait of a busy machine may be over.
      await expect.poll(settle).toMatchObject({ status: 503, body: { success: false, nextAction: "poll" } });
      second.behave(forwardingTo(rpcUrl));
      await expect.poll(async () => (await settle()).body).toMatchObject({ success: true });
      await Promise.all([forger.stop(), second.stop()]);
    },
  );

  test("the first says reverted, two others say settled: it is settled", async (context) => {
    const { expect } = context;
    const composition = await composeOne(context);
    const liar = await startLiar();
    const { rpcUrl } = composition.chain;
    const third = await startStubNode(forwardingTo(rpcUrl));
    const service = await composition.start({
      network: composition.configuration({
        rpcUrls: [liar.url, rpcUrl, third.url],
        successEndpoints: 2,
      }),
    });
    const { body } = await composition.post(service, "settle", await composition.payment());
    expect(body).toMatchObject({ success: true });
    await Promise.all([liar.stop(), third.stop()]);
  });

  test("a payment whose transaction was really reverted is called failed by both", async (context) => {
    const { expect } = context;
    const composition = await composeOne(context);
    const { rpcUrl } = composition.chain;
    const service = await composition.start({
      network: composition.configuration({ rpcUrls: [rpcUrl, rpcUrl.replace("127.0.0.1", "localhost")] }),
    });
    const body = await composition.payment("fickle");
    const { body: answer } = await composition.post(service, "settle", body);
    expect(answer).toMatchObject({ success: false, errorReason: "invalid_transaction_state" });
  });
});
