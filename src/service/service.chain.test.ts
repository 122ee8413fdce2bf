import { describe, expect, test } from "vitest";
import type { Running } from "../../test/support/composition.ts";
import { accountOf, keyOf } from "../../test/support/key-accounts.ts";
import { altering } from "../../test/support/misbehaviour.ts";
import { openMigrated } from "../../test/support/open-migrated.ts";
import type { Body } from "../../test/support/service.ts";
import { forwardingTo, startStubNode } from "../../test/support/stub-node.ts";
import { useComposition } from "../../test/support/use-composition.ts";
import { encodeOperatorChange } from "../chain/deploy/contract-state.ts";
import { createLocalSigner } from "../chain/signing/local-signer.ts";
import { parsePaymentRequest } from "../methods/methods.ts";
import { createLogger } from "../observe/log/logger.ts";
import { harnessAccounts } from "../payer/accounts.ts";
import type { Hex } from "../protocol/hex.ts";
import { ConfigurationError } from "../util/errors.ts";
import { requestJson } from "../util/http-client.ts";
import { createCore } from "./service.ts";

/*
 * The service as production composes it: a configuration, a database file, a node that it does not own.
 */

const composition = useComposition();

describe("requests to the node", () => {
  /** Since the last time, but for the watcher's look at its account, which it takes once after a start, whenever that is. */
  const taken = () =>
    composition.proxy
      .take()
      .map((methods) => methods.filter((method) => method !== "eth_getTransactionCount"))
      .filter((methods) => methods.length > 0);

  test("a verify costs one, a settle two before the receipt", async () => {
    const service = await composition.start();
    const body = await composition.payment();
    taken();
    expect((await composition.post(service, "verify", body)).body).toMatchObject({ isValid: true });
    expect(taken()).toEqual([["eth_getBlockByNumber", "eth_call"]]);

    expect((await composition.post(service, "settle", body)).body).toMatchObject({ success: true });
    const requests = taken();
    const untilReceipt = requests.slice(
      0,
      requests.findIndex(([method]) => method === "eth_getTransactionReceipt"),
    );
    expect(untilReceipt.map((methods) => methods.at(-1))).toEqual([
      "eth_maxPriorityFeePerGas",
      "eth_sendRawTransaction",
    ]);
  });

  test("an organization that refuses payers with code costs no more of them", async () => {
    const service = await composition.start();
    await service.service.organizations.setLimits("org", "base", { refusePayersWithCode: true });
    const [plain, delegated] = [await composition.payment(), await composition.payment("delegated")];
    taken();
    expect((await composition.post(service, "verify", plain)).body).toMatchObject({ isValid: true });
    expect(taken()).toEqual([["eth_getBlockByNumber", "eth_call", "eth_call"]]);
    // The second one asks whether the authorization was used, as of every refusal for which payers sign again.
    expect((await composition.post(service, "verify", delegated)).body).toMatchObject({ isValid: false });
    expect(taken()).toEqual([["eth_getBlockByNumber", "eth_call", "eth_call"], ["eth_call"]]);
    const before = await composition.operatorTransactions();
    expect((await composition.post(service, "settle", delegated)).body).toMatchObject({ success: false });
    expect(taken().map((methods) => methods.at(-1))).toEqual(["eth_maxPriorityFeePerGas", "eth_call"]);
    expect(await composition.operatorTransactions()).toBe(before);
    expect((await composition.post(service, "settle", plain)).body).toMatchObject({ success: true });
    const untilSent = taken().slice(0, 2);
    expect(untilSent.map((methods) => methods.at(-1))).toEqual([
      "eth_maxPriorityFeePerGas",
      "eth_sendRawTransaction",
    ]);
  });

  test("payments of payers with code that were taken before they were refused are still answered", async () => {
    const service = await composition.start({ settleWaitMs: 300 });
    const body = await composition.payment("delegated");
    const release = await composition.holdMining();
    // Until then it may not be claimed yet.
    await expect
      .poll(async () => await composition.post(service, "settle", body))
      .toMatchObject({ status: 503, body: { paymentState: "in_flight" } });
    await service.service.organizations.setLimits("org", "base", { refusePayersWithCode: true });
    await release();
    await expect
      .poll(async () => (await composition.post(service, "settle", body)).body)
      .toMatchObject({ success: true });
  });

  test("a payment that is bad on its face costs the question whether it was used, one with a bad signature one more", async () => {
    const service = await composition.start();
    const body = await composition.payment();
    const wrongValue = structuredClone(body);
    wrongValue.paymentRequirements.maxAmountRequired = "1";
    const wrongSignature = structuredClone(body);
    wrongSignature.paymentPayload.payload.signature = `0x${"11".repeat(64)}1b`;
    taken();
    await composition.post(service, "verify", wrongValue);
    expect(taken()).toEqual([["eth_call"]]);
    await composition.post(service, "verify", wrongSignature);
    expect(taken()).toHaveLength(2);
  });
});

test("a remote signer that takes its time holds up no payment that is verified", async () => {
  const local = createLocalSigner(harnessAccounts.operator.privateKey);
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const service = await composition.start({
    signer: {
      address: local.address,
      async signTransaction(transaction) {
        asked.resolve();
        await answer.promise;
        return local.signTransaction(transaction);
      },
    },
  });
  const settle = composition.post(service, "settle", await composition.payment());
  await asked.promise;
  const verify = await composition.post(service, "verify", await composition.payment());
  expect(verify.body).toMatchObject({ isValid: true });
  answer.resolve();
  expect((await settle).body).toMatchObject({ success: true });
});

describe("what is in flight when the service ends", () => {
  test("is concluded by the next one, and its success goes to the first repeat", async () => {
    const before = await composition.recipientBalance();
    const body = await composition.payment();
    const release = await composition.holdMining();
    const first = await composition.start({ settleWaitMs: 300 });
    expect((await composition.post(first, "settle", body)).status).toBe(503);
    await composition.stop(first);

    await composition.chain.node.request("anvil_dropAllTransactions");
    await release();
    const second = await composition.start();
    const answers = await Promise.all([
      composition.post(second, "settle", body),
      composition.post(second, "settle", body),
    ]);
    expect(answers.map(({ body: answer }) => (answer as { success: boolean }).success).sort()).toEqual([
      false,
      true,
    ]);
    expect(await composition.recipientBalance()).toBe(before + 10_000n);
  });

  test("is not refused to a request that saw it unclaimed, and then used by its own transaction", async () => {
    const body = await composition.payment();
    const release = await composition.holdMining();
    const first = await composition.start({ settleWaitMs: 300 });
    expect((await composition.post(first, "settle", body)).status).toBe(503);
    await release();
    await composition.stop(first);
    let looks = 0;
    const second = await composition.start({
      wrap: {
        ledger: (ledger) => ({
          ...ledger,
          claims: {
            ...ledger.claims,
            find: async (id) => (++looks === 1 ? null : ledger.claims.find(id)),
          },
        }),
      },
    });
    expect((await composition.post(second, "settle", body)).body).toMatchObject({ success: true });
    expect(looks).toBeGreaterThan(1);
  });

  /** Ends a service as kill -9 would, as far as the database knows: what it holds stays held, and is not renewed. */
  async function dieOver(body: Body, leaseMs: number): Promise<void> {
    const dead = async () => {};
    const first = await composition.start({
      leaseMs,
      wrap: {
        ledger: (ledger) => ({
          ...ledger,
          leases: { ...ledger.leases, releaseLease: dead, renewLeases: dead },
        }),
      },
    });
    composition.proxy.take();
    const waiting = composition.post(first, "settle", body);
    await composition.untilSent();
    await composition.stop(first);
    expect((await waiting).status).toBe(503);
  }

  test("the same payment sent again right after a death waits for the dead one's lease, and gets the success", async () => {
    const body = await composition.payment();
    const release = await composition.holdMining();
    await dieOver(body, 2_000);
    const second = await composition.start();
    const answer = composition.post(second, "settle", body);
    await release();
    expect((await answer).body).toMatchObject({ success: true });
  });

  test("and is told that it is under way, never that it failed, where it cannot wait so long", async () => {
    const body = await composition.payment("funded", 600, 2);
    const release = await composition.holdMining();
    await dieOver(body, 60_000);
    await release();
    const second = await composition.start({ settleWaitMs: 1_500 });
    expect(await composition.post(second, "settle", body)).toMatchObject({
      status: 503,
      headers: { "x-settlement-state": "pending" },
      body: { errorReason: "settlement_pending", transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
    });
  });

  test("while another instance lives that waits for it, a repeat is told that it is pending, as soon as that shows", async () => {
    const body = await composition.payment();
    const release = await composition.holdMining();
    const first = await composition.start({ leaseMs: 6_000, settleWaitMs: 20_000 });
    composition.proxy.take();
    const waiting = composition.post(first, "settle", body);
    await composition.untilSent();
    const second = await composition.start({ settleWaitMs: 20_000 });
    expect(await composition.post(second, "settle", body)).toMatchObject({
      status: 503,
      headers: { "x-settlement-state": "pending" },
      body: { success: false, errorMessage: expect.stringMatching(/Transaction 0x[0-9a-f]{64} is sent/) },
    });
    await release();
    expect((await waiting).body).toMatchObject({ success: true });
  });

  test("lets the service close at once, and tells who was waiting that it is under way", async () => {
    const body = await composition.payment("funded", 600, 2);
    const release = await composition.holdMining();
    const service = await composition.start({ settleWaitMs: 60_000 });
    composition.proxy.take();
    const waiting = composition.post(service, "settle", body);
    await composition.untilSent();
    await composition.stop(service);
    expect(await waiting).toMatchObject({
      status: 503,
      headers: { "x-settlement-state": "pending" },
      body: { errorReason: "settlement_pending", transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
    });
    await release();
    const next = await composition.start();
    expect((await composition.post(next, "settle", body)).body).toMatchObject({ success: true });
  });
});

test("a core that is closed while it still answers tells of what is under way, as its ledger stays open until then", async () => {
  const core = createCore({
    networks: [composition.configuration()],
    signers: [createLocalSigner(harnessAccounts.operator.privateKey)],
    database: await openMigrated(composition.databaseUrl()),
    apiKeyPepper: "test",
    settleWaitMs: 60_000,
    logger: createLogger("silent"),
  });
  const { organizations, facilitator } = core;
  await organizations.create({ id: "org", name: "Org" });
  await organizations.setRecipient("org", "base", harnessAccounts.recipient.address);
  const { key } = await organizations.createKey("org", { scopes: ["settle"] });
  const caller = await organizations.authenticate(key);
  const parsed = parsePaymentRequest(await composition.payment());
  if (caller === null || !parsed.ok) throw new Error("neither the key nor the payment is good");
  await core.start();
  const release = await composition.holdMining();
  composition.proxy.take();
  const waiting = facilitator.settle(parsed.request, caller, new AbortController().signal, () => {});
  await composition.untilSent();
  const stopped = core.stop();
  await core.close();
  expect(await waiting).toMatchObject({ kind: "pending" });
  await stopped;
  await release();
});

describe("the operator's txNonces", () => {
  test("more payments than may be in flight: all settle, none is skipped and none used twice", async () => {
    const before = await composition.operatorTransactions();
    const release = await composition.holdMining();
    const service = await composition.start({ settleWaitMs: 30_000 });
    const bodies = await Promise.all(Array.from({ length: 60 }, () => composition.payment()));
    const settling = Promise.all(
      bodies.map(async (body, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 10));
        return composition.post(service, "settle", body);
      }),
    );
    await new Promise((resolve) => setTimeout(resolve, 900));
    const pool = (await composition.chain.node.request("txpool_status")) as { pending: Hex; queued: Hex };
    expect(Number(pool.pending) + Number(pool.queued)).toBeLessThanOrEqual(16);
    await release();
    const answers = await settling;
    expect(answers.filter(({ body }) => (body as { success: boolean }).success)).toHaveLength(60);
    expect(await composition.operatorTransactions()).toBeGreaterThan(before);
    expect(Number(((await composition.chain.node.request("txpool_status")) as { queued: Hex }).queued)).toBe(
      0,
    );
  });

  test("a broadcast that is lost is sent again with the same txNonce", async () => {
    const before = await composition.operatorTransactions();
    const release = await composition.holdMining();
    const service = await composition.start();
    composition.proxy.take();
    const settling = composition.post(service, "settle", await composition.payment());
    await composition.untilSent();
    await composition.chain.node.request("anvil_dropAllTransactions");
    await release();
    expect((await settling).body).toMatchObject({ success: true });
    expect(await composition.operatorTransactions()).toBe(before + 1);
  });
});

describe("a network that is not what was configured", () => {
  test.each([
    [
      "another chain",
      () => composition.configuration({ chainId: 10 }),
      "base: the RPC serves chain 8453, but base is chain 10",
    ],
    [
      "no contract",
      () => composition.configuration({ facilitatorContract: "0x00000000000000000000000000000000000000aa" }),
      "base: there is no facilitator contract at 0x00000000000000000000000000000000000000aa",
    ],
    [
      "another token name",
      () => composition.configuration({ assets: [{ ...composition.chain.asset, name: "USDC" }] }),
      `base: the token 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913 signs for another domain than name "USDC", version "2"`,
    ],
    [
      "no token",
      () =>
        composition.configuration({
          assets: [{ ...composition.chain.asset, address: harnessAccounts.admin.address }],
        }),
      `base: there is no EIP-3009 token at ${harnessAccounts.admin.address}`,
    ],
  ])("%s: the service does not start, and says so", async (_name, network, message) => {
    await expect(composition.start({ network: network() })).rejects.toThrow(ConfigurationError);
    await expect(composition.start({ network: network() })).rejects.toThrow(message);
  });

  test("a node that is not reached yet is tried again", async () => {
    const dead = composition.configuration({ rpcUrls: ["http://127.0.0.1:1"] });
    const service = await composition.start({ network: dead });
    expect(await composition.post(service, "settle", await composition.payment())).toMatchObject({
      status: 503,
    });
    expect((await requestJson(service.url.replace("/v1", "/readyz"))).body).toMatchObject({
      networks: { base: { ready: false } },
    });
  });
});

test("no log holds a key, a signature or an address of a node", async () => {
  const log: string[] = [];
  const good = await composition.start({ log });
  const body = await composition.payment();
  await composition.post(good, "verify", body);
  await composition.post(good, "settle", body);
  const secret = new URL("/provider-key-in-the-path", composition.proxy.url).href;
  const broken = await composition.start({
    log,
    network: composition.configuration({ rpcUrls: ["http://127.0.0.1:1/provider-key"] }),
  });
  await composition.post(broken, "settle", await composition.payment("smartWallet"));

  expect(log.length).toBeGreaterThan(3);
  const text = log.join("\n");
  for (const hidden of [
    good.key,
    broken.key,
    body.paymentPayload.payload.signature,
    harnessAccounts.operator.privateKey,
    composition.proxy.url,
    secret,
    "provider-key",
  ]) {
    expect(text).not.toContain(hidden);
  }
});

describe("a gas budget of the day", () => {
  test("that is used up keeps payments from being signed, and says so", async () => {
    const service = await composition.start();
    const { organizations } = service.service;
    await organizations.setLimits("org", "base", { dailyGasBudget: 10n ** 18n });
    expect((await composition.post(service, "settle", await composition.payment())).body).toMatchObject({
      success: true,
    });
    await organizations.setLimits("org", "base", { dailyGasBudget: 1n });
    const before = await composition.operatorTransactions();
    const body = await composition.payment();
    const refused = await composition.post(service, "settle", body);
    expect(refused).toMatchObject({
      status: 429,
      body: {
        type: "urn:x402-facilitator-kit:problem:gas-budget-used-up",
        detail: expect.stringMatching(
          /^The organization's gas budget of the day is used up: [1-9]\d{9,} of 1 wei, and 0 settlements under way; nothing was sent$/,
        ),
        success: false,
        errorReason: "unexpected_settle_error",
      },
    });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect(await composition.operatorTransactions()).toBe(before);
    expect((await composition.post(service, "verify", body)).body).toMatchObject({ isValid: true });

    await organizations.setLimits("org", "base", { dailyGasBudget: null });
    expect((await composition.post(service, "settle", body)).body).toMatchObject({ success: true });
  });
});

test("payers with code use a quarter of a gas budget, and cannot close a shop for plain accounts", async () => {
  const service = await composition.start();
  const { organizations } = service.service;
  const setBudget = (dailyGasBudget: bigint) => organizations.setLimits("org", "base", { dailyGasBudget });
  const settle = async (payer?: "fickle") =>
    composition.post(service, "settle", await composition.payment(payer));
  for (let payment = 0; payment < 3; payment++) {
    expect((await settle("fickle")).body).toMatchObject({
      success: false,
      errorReason: "invalid_transaction_state",
    });
  }
  await setBudget(4n);
  const { body } = await settle("fickle");
  const spent = BigInt(/: (\d+) of \d wei/.exec(JSON.stringify(body))?.[1] ?? 0);
  expect(spent).toBeGreaterThan(0n);
  // What they have spent is exactly what they may.
  await setBudget(4n * spent);
  expect(await settle("fickle")).toMatchObject({
    status: 429,
    body: {
      type: "urn:x402-facilitator-kit:problem:gas-budget-used-up",
      detail: expect.stringContaining("that payers with code and gas money for approvals may use is used up"),
    },
  });
  expect((await settle()).body).toMatchObject({ success: true });
});

describe("a network that is reached late", () => {
  test("is not served while another program sends with the operator's key", async () => {
    const node = await startStubNode((_calls, response) => void response.destroy());
    const log: string[] = [];
    // The ledger knows the operator from before.
    await composition.stop(await composition.start());
    const late = await composition.start({
      network: composition.configuration({ rpcUrls: [node.url] }),
      log,
    });
    const next = (await composition.operatorTransactions()) + 3;
    const operator = harnessAccounts.operator.address;
    await composition.chain.node.request("anvil_setNonce", operator, `0x${next.toString(16)}`);
    node.behave(forwardingTo(composition.chain.rpcUrl));

    await expect.poll(() => log.join("")).toContain("this database at");
    const readiness = await requestJson(late.url.replace("/v1", "/readyz"));
    expect(readiness).toMatchObject({
      status: 503,
      body: { networks: { base: { ready: false, detail: "not what was configured; the log says more" } } },
    });
    // Nothing is signed with a txNonce that another program has taken.
    expect(await composition.post(late, "settle", await composition.payment())).toMatchObject({
      status: 503,
      body: { detail: "base is not ready; nothing was sent, try again" },
    });
    expect(await composition.operatorTransactions()).toBe(next);
    await node.stop();
  });
});

describe("a network that is not as configured when it is reached late", () => {
  test("is refused with the sentence of a start until it is right, and then served", async () => {
    const node = await startStubNode((_calls, response) => void response.destroy());
    const log: string[] = [];
    const late = await composition.start({
      network: composition.configuration({ rpcUrls: [node.url] }),
      log,
    });
    const otherCode = altering(forwardingTo(composition.chain.rpcUrl), "eth_getCode", () => "0x00");
    node.behave(otherCode);
    const contract = composition.chain.facilitatorContract;
    const sentence = `${contract} has other code than this version's contract`;
    await expect.poll(() => log.join("")).toContain(sentence);
    expect(await composition.post(late, "settle", await composition.payment())).toMatchObject({
      status: 503,
    });
    node.behave(forwardingTo(composition.chain.rpcUrl));
    await expect.poll(() => log.join("")).toContain("the network is served now");
    expect((await composition.post(late, "settle", await composition.payment())).body).toMatchObject({
      success: true,
    });
    await node.stop();
  });
});

describe("readiness says no", () => {
  const readyz = async ({ url }: Running) => (await requestJson(url.replace("/v1", "/readyz"))).body;

  test("where this machine's clock is far behind the chain's", async () => {
    const ahead = altering(forwardingTo(composition.chain.rpcUrl), "eth_getBlockByNumber", (block) => {
      const { timestamp, ...rest } = block as { timestamp: Hex };
      return { ...rest, timestamp: `0x${(Number(timestamp) + 3_600).toString(16)}` };
    });
    const node = await startStubNode(ahead);
    const running = await composition.start({
      network: composition.configuration({ rpcUrls: [node.url] }),
    });
    expect(await readyz(running)).toMatchObject({
      networks: {
        base: { ready: false, detail: expect.stringMatching(/^the newest block is 3[56]\d\d s ahead of/) },
      },
    });
    await node.stop();
  });

  test("where no operator has gas money, until one has", async () => {
    const { chain } = composition;
    const { address } = harnessAccounts.operator;
    await chain.setBalance(address, 0n);
    const running = await composition.start({ inspectEveryMs: 100 });
    expect(await readyz(running)).toMatchObject({
      networks: { base: { ready: false, detail: "no operator can settle; the log says why" } },
    });
    await chain.setBalance(address, 10n ** 20n);
    await expect
      .poll(() => readyz(running))
      .toMatchObject({ networks: { base: { ready: true, detail: "ok" } } });
  });
});

describe("an operator that cannot send", () => {
  const other = accountOf("second operator").address;

  /** Settles more payments at once than one transaction is waited for, and gives what the log names. */
  async function settleThroughBoth(named: string): Promise<void> {
    const log: string[] = [];
    const running = await composition.start({ otherOperators: [keyOf("second operator")], log });
    expect((await requestJson(running.url.replace("/v1", "/readyz"))).body).toMatchObject({
      networks: { base: { ready: true, detail: "1 of 2 operators cannot settle; the log says why" } },
    });
    expect(log.filter((line) => line.includes(named))).toHaveLength(1);
    const bodies = await Promise.all(Array.from({ length: 8 }, () => composition.payment()));
    const answers = await Promise.all(bodies.map((body) => composition.post(running, "settle", body)));
    for (const { body } of answers) expect(body).toMatchObject({ success: true });
  }

  test("without its role is named, and payments go through the one before it", async () => {
    await composition.chain.setBalance(other, 10n ** 18n);
    await settleThroughBoth(`${other} does not hold OPERATOR_ROLE`);
  });

  test("without gas money is named, and payments go through the one after it", async () => {
    const { node, facilitatorContract } = composition.chain;
    const { admin, operator } = harnessAccounts;
    await node.request("anvil_impersonateAccount", admin.address);
    const data = encodeOperatorChange("grant", other);
    await composition.chain.setBalance(admin.address, 10n ** 18n);
    await node.request("eth_sendTransaction", { from: admin.address, to: facilitatorContract, data });
    await node.request("evm_mine");
    await composition.chain.setBalance(other, 10n ** 18n);
    await composition.chain.setBalance(operator.address, 0n);
    try {
      await settleThroughBoth(`0 ETH of ${operator.address} does not cover one settlement`);
    } finally {
      await composition.chain.setBalance(operator.address, 10n ** 22n);
    }
  });
});

describe("a node that says nothing any more", () => {
  test("is found out by /readyz in time to tell of it", async () => {
    const node = await startStubNode(forwardingTo(composition.chain.rpcUrl));
    const running = await composition.start({
      network: composition.configuration({ rpcUrls: [node.url] }),
    });
    const readyz = () => requestJson(running.url.replace("/v1", "/readyz"));
    expect(await readyz()).toMatchObject({ status: 200, body: { status: "ready" } });
    node.behave(() => {});
    // What was found out a moment ago is not asked again.
    await expect.poll(readyz).toMatchObject({
      status: 503,
      body: { networks: { base: { ready: false, detail: "the RPC does not answer" } } },
    });
    await node.stop();
  });
});
