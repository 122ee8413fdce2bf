import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { NetworkConfig } from "../src/config/network-config.ts";
import { ConfigurationError } from "../src/errors/configuration.ts";
import { harnessAccounts } from "../src/harness/accounts.ts";
import { resolveFacilitatorContracts } from "../src/harness/addresses.ts";
import type { HarnessChain } from "../src/harness/chain.ts";
import { type Chains, startChains } from "../src/harness/chains.ts";
import { requestJson } from "../src/harness/http-json.ts";
import { signAs } from "../src/harness/sign-as.ts";
import type { TestPayerName } from "../src/harness/test-payers.ts";
import { createLogger } from "../src/logging/logger.ts";
import { buildPaymentRequest } from "../src/protocol/build-request.ts";
import type { Hex } from "../src/protocol/hex.ts";
import { createService, type Service } from "../src/service.ts";
import { type CountingProxy, startCountingProxy } from "./support/counting-proxy.ts";
import type { Body } from "./support/service.ts";

/*
 * The service as production composes it: a configuration, a database file, a node that it does not own.
 */

let chains: Chains;
let chain: HarnessChain;
let proxy: CountingProxy;
let directory: string;
const running = new Set<Service>();

beforeAll(async () => {
  chains = await startChains({ networks: ["base"], facilitatorContracts: resolveFacilitatorContracts() });
  const { base } = chains.chains;
  if (base === undefined) throw new Error("base is not running");
  chain = base;
  proxy = await startCountingProxy(chain.rpcUrl);
});
afterAll(async () => {
  await proxy.close();
  await chains.stop();
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "x402-service-"));
});
afterEach(async () => {
  for (const service of running) await service.close();
  running.clear();
  await rm(directory, { recursive: true });
});

function configuration(changes: Partial<NetworkConfig> = {}): NetworkConfig {
  const { network, facilitatorContract, asset } = chain;
  return {
    ...network,
    blockTimeMs: 200,
    facilitatorContract,
    rpcUrls: [proxy.url],
    assets: [asset],
    confirmations: 1,
    maxFeePerGas: 10n ** 12n,
    ...changes,
  };
}

type Running = { service: Service; url: string; key: string };

/** Starts a service on the test's database file. */
async function start(
  options: { network?: NetworkConfig; settleWaitMs?: number; log?: string[] } = {},
): Promise<Running> {
  const { network = configuration(), settleWaitMs = 5_000, log } = options;
  const service = await createService({
    networks: [network],
    operatorKey: harnessAccounts.operator.privateKey,
    databaseUrl: `sqlite:${join(directory, "ledger.sqlite")}`,
    apiKeyPepper: "test",
    settleWaitMs,
    logger:
      log === undefined
        ? createLogger("silent")
        : createLogger("trace", { write: (line: string) => void log.push(line) }),
  });
  running.add(service);
  const { organizations } = service;
  if ((await organizations.find("org")) === null) {
    await organizations.create({ id: "org", name: "Org" });
    await organizations.setRecipient("org", "base", harnessAccounts.recipient.address);
  }
  const { key } = await organizations.createKey("org", { scopes: ["verify", "settle"] });
  await service.start();
  const origin = await service.listen({ host: "127.0.0.1", port: 0 });
  return { service, url: `${origin}/v1`, key };
}

async function stop({ service }: Running): Promise<void> {
  running.delete(service);
  await service.close();
}

async function payment(payer: TestPayerName = "funded"): Promise<Body> {
  const { network, asset, facilitatorContract } = chain;
  const signed = await signAs(payer, {
    asset,
    chainId: network.chainId,
    to: facilitatorContract,
    value: 10_000n,
    validBefore: (await chain.now()) + 600n,
  });
  return buildPaymentRequest({
    x402Version: 1,
    network,
    asset,
    payTo: facilitatorContract,
    amount: 10_000n,
    resource: "https://merchant.example/resource",
    ...signed,
  });
}

function post({ url, key }: Running, operation: "verify" | "settle", body: Body) {
  return requestJson(`${url}/${operation}`, { method: "POST", headers: { authorization: key }, body });
}

/** Resolves when the service has sent a transaction since the last look at the proxy. */
async function untilSent(): Promise<void> {
  while (!proxy.take().flat().includes("eth_sendRawTransaction")) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Nothing is mined until the returned function is called. */
async function holdMining(): Promise<() => Promise<void>> {
  await chain.node.request("evm_setAutomine", false);
  await chain.node.request("evm_setIntervalMining", 0);
  return async () => {
    await chain.node.request("evm_setAutomine", true);
    await chain.node.request("evm_mine");
  };
}

async function operatorTransactions(): Promise<number> {
  const count = await chain.node.request(
    "eth_getTransactionCount",
    harnessAccounts.operator.address,
    "latest",
  );
  return Number(count as Hex);
}

async function recipientBalance(): Promise<bigint> {
  const data = `0x70a08231${harnessAccounts.recipient.address.slice(2).padStart(64, "0")}`;
  return BigInt((await chain.node.request("eth_call", { to: chain.asset.address, data }, "latest")) as Hex);
}

describe("requests to the node", () => {
  test("a verify costs one, a settle two before the receipt", async () => {
    const service = await start();
    const body = await payment();
    proxy.take();
    expect((await post(service, "verify", body)).body).toMatchObject({ isValid: true });
    expect(proxy.take()).toEqual([["eth_getBlockByNumber", "eth_call"]]);

    expect((await post(service, "settle", body)).body).toMatchObject({ success: true });
    const requests = proxy.take();
    const untilReceipt = requests.slice(
      0,
      requests.findIndex(([method]) => method === "eth_getTransactionReceipt"),
    );
    expect(untilReceipt.map((methods) => methods.at(-1))).toEqual([
      "eth_getBalance",
      "eth_sendRawTransaction",
    ]);
  });

  test("a payment that is bad on its face costs none, one with a bad signature one", async () => {
    const service = await start();
    const body = await payment();
    const wrongValue = structuredClone(body);
    wrongValue.paymentRequirements.maxAmountRequired = "1";
    const wrongSignature = structuredClone(body);
    wrongSignature.paymentPayload.payload.signature = `0x${"11".repeat(64)}1b`;
    proxy.take();
    await post(service, "verify", wrongValue);
    expect(proxy.take()).toEqual([]);
    await post(service, "verify", wrongSignature);
    expect(proxy.take()).toHaveLength(1);
  });
});

describe("what is in flight when the service ends", () => {
  test("is concluded by the next one, and its success goes to whoever asks first", async () => {
    const before = await recipientBalance();
    const body = await payment();
    const release = await holdMining();
    const first = await start({ settleWaitMs: 300 });
    expect((await post(first, "settle", body)).status).toBe(503);
    await stop(first);

    await chain.node.request("anvil_dropAllTransactions");
    await release();
    const second = await start();
    const answers = await Promise.all([post(second, "settle", body), post(second, "settle", body)]);
    expect(answers.map(({ body: answer }) => (answer as { success: boolean }).success).sort()).toEqual([
      false,
      true,
    ]);
    expect(await recipientBalance()).toBe(before + 10_000n);
  });

  test("lets the service close at once, and tells who was waiting that it is under way", async () => {
    const body = await payment();
    const release = await holdMining();
    const service = await start({ settleWaitMs: 60_000 });
    proxy.take();
    const waiting = post(service, "settle", body);
    await untilSent();
    await stop(service);
    expect(await waiting).toMatchObject({ status: 503, body: { success: false } });
    await release();
    const next = await start();
    expect((await post(next, "settle", body)).body).toMatchObject({ success: true });
  });
});

describe("the operator's txNonces", () => {
  test("more payments than may be in flight: all settle, none is skipped and none used twice", async () => {
    const before = await operatorTransactions();
    const release = await holdMining();
    const service = await start({ settleWaitMs: 30_000 });
    const bodies = await Promise.all(Array.from({ length: 60 }, () => payment()));
    const settling = Promise.all(
      bodies.map(async (body, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 10));
        return post(service, "settle", body);
      }),
    );
    await new Promise((resolve) => setTimeout(resolve, 900));
    const pool = (await chain.node.request("txpool_status")) as { pending: Hex; queued: Hex };
    expect(Number(pool.pending) + Number(pool.queued)).toBeLessThanOrEqual(16);
    await release();
    const answers = await settling;
    expect(answers.filter(({ body }) => (body as { success: boolean }).success)).toHaveLength(60);
    expect(await operatorTransactions()).toBeGreaterThan(before);
    expect(Number(((await chain.node.request("txpool_status")) as { queued: Hex }).queued)).toBe(0);
  });

  test("a broadcast that is lost is sent again with the same txNonce", async () => {
    const before = await operatorTransactions();
    const release = await holdMining();
    const service = await start();
    proxy.take();
    const settling = post(service, "settle", await payment());
    await untilSent();
    await chain.node.request("anvil_dropAllTransactions");
    await release();
    expect((await settling).body).toMatchObject({ success: true });
    expect(await operatorTransactions()).toBe(before + 1);
  });
});

describe("a network that is not what was configured", () => {
  test.each([
    [
      "another chain",
      () => configuration({ chainId: 10 }),
      "base: the RPC serves chain 8453, but base is chain 10",
    ],
    [
      "no contract",
      () => configuration({ facilitatorContract: "0x00000000000000000000000000000000000000aa" }),
      "base: there is no facilitator contract at 0x00000000000000000000000000000000000000aa",
    ],
    [
      "another token name",
      () => configuration({ assets: [{ ...chain.asset, name: "USDC" }] }),
      `base: the token 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913 signs for another domain than name "USDC", version "2"`,
    ],
    [
      "no token",
      () => configuration({ assets: [{ ...chain.asset, address: harnessAccounts.admin.address }] }),
      `base: there is no EIP-3009 token at ${harnessAccounts.admin.address}`,
    ],
  ])("%s: the service does not start, and says so", async (_name, network, message) => {
    await expect(start({ network: network() })).rejects.toThrow(ConfigurationError);
    await expect(start({ network: network() })).rejects.toThrow(message);
  });

  test("a node that is not reached yet is tried again", async () => {
    const dead = configuration({ rpcUrls: ["http://127.0.0.1:1"] });
    const service = await start({ network: dead });
    expect(await post(service, "settle", await payment())).toMatchObject({ status: 503 });
    expect((await requestJson(service.url.replace("/v1", "/readyz"))).body).toMatchObject({
      networks: { base: { ready: false } },
    });
  });
});

test("no log holds a key, a signature or an address of a node", async () => {
  const log: string[] = [];
  const good = await start({ log });
  const body = await payment();
  await post(good, "verify", body);
  await post(good, "settle", body);
  const secret = new URL("/provider-key-in-the-path", proxy.url).href;
  const broken = await start({
    log,
    network: configuration({ rpcUrls: ["http://127.0.0.1:1/provider-key"] }),
  });
  await post(broken, "settle", await payment("smartWallet"));

  expect(log.length).toBeGreaterThan(3);
  const text = log.join("\n");
  for (const hidden of [
    good.key,
    broken.key,
    body.paymentPayload.payload.signature,
    harnessAccounts.operator.privateKey,
    proxy.url,
    secret,
    "provider-key",
  ]) {
    expect(text).not.toContain(hidden);
  }
});
