import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Signer } from "../../src/chain/signing/local-signer.ts";
import { createAuthorizers, createLocalSigner } from "../../src/chain/signing/local-signer.ts";
import type { NetworkConfig } from "../../src/config/serve-config.ts";
import { resolveFacilitatorContracts } from "../../src/harness/setup/addresses.ts";
import { startChains } from "../../src/harness/setup/chains.ts";
import type { HarnessChain } from "../../src/harness/setup/prepare-chain.ts";
import { buildPaymentRequest } from "../../src/methods/exact-eip3009/eip3009-method.ts";
import type { WaysToPay } from "../../src/methods/on-chain/ways-to-pay.ts";
import { createLogger } from "../../src/observe/log/logger.ts";
import { harnessAccounts } from "../../src/payer/accounts.ts";
import type { TestPayerName } from "../../src/payer/test-payers.ts";
import type { Address, Hex } from "../../src/protocol/hex.ts";
import type { X402Version } from "../../src/protocol/requests.ts";
import type { Service } from "../../src/service/service.ts";
import { type JsonResponse, requestJson } from "../../src/util/http-client.ts";
import { type CountingProxy, startCountingProxy } from "./counting-proxy.ts";
import { makeDatabaseFolder } from "./database-folder.ts";
import { localNetwork } from "./local-network.ts";
import { openMigrated } from "./open-migrated.ts";
import type { Body } from "./service.ts";
import { signAs } from "./sign-as.ts";
import { createWrappedService, type Wrap } from "./wrapped-service.ts";

/**
 * How long a settle waits for its block in tests about something else. A quiet machine needs less than a second, a busy
 * one may take ten times as long.
 */
export const patientWaitMs = 20_000;

/** A running service, and how to call it. */
export type Running = { service: Service; url: string; key: string };

/** A local chain, with services on it that are composed as in production. */
export type Composition = {
  chain: HarnessChain;
  /** The proxy between the services and the node. */
  proxy: CountingProxy;
  configuration(changes?: Partial<NetworkConfig>): NetworkConfig;
  /** Creates a new directory for the database of the next services. */
  openDirectory(): Promise<void>;
  /** The URL of the database in that directory. */
  databaseUrl(): string;
  /** Starts a service on the directory's database, which an earlier service may have used. */
  start(options?: {
    network?: NetworkConfig;
    /** {@link patientWaitMs} by default. */
    settleWaitMs?: number;
    leaseMs?: number;
    inspectEveryMs?: number;
    log?: string[];
    /** The harness's operator by default. */
    signer?: Signer;
    /** Private keys of additional operators. */
    otherOperators?: readonly Hex[];
    wrap?: Wrap;
    ways?: WaysToPay;
    serviceId?: string;
  }): Promise<Running>;
  stop(running: Running): Promise<void>;
  stopAll(): Promise<void>;
  /** If `straight`, the payment goes directly to the recipient instead of through the facilitator contract. */
  payment(
    payer?: TestPayerName,
    validForSeconds?: number,
    x402Version?: X402Version,
    options?: { straight: boolean },
  ): Promise<Body>;
  post(running: Running, operation: "verify" | "settle", body: Body): Promise<JsonResponse>;
  /** Holds mining until the returned function is called. */
  holdMining(): Promise<() => Promise<void>>;
  /** Resolves when a service has sent a transaction since the proxy was last read. */
  untilSent(): Promise<void>;
  /** The number of mined transactions of the operator. */
  operatorTransactions(): Promise<number>;
  balanceOf(account: Address): Promise<bigint>;
  recipientBalance(): Promise<bigint>;
  close(): Promise<void>;
};

/** Composes services on a running chain, or on a new chain of base. */
export async function compose(running?: HarnessChain): Promise<Composition> {
  const chains =
    running === undefined
      ? await startChains({ networks: ["base"], facilitatorContracts: resolveFacilitatorContracts() })
      : undefined;
  const chain = running ?? chains?.chains.base;
  if (chain === undefined) throw new Error("base is not running");
  const { node } = chain;
  const proxy = await startCountingProxy(chain.rpcUrl);
  const services = new Set<Service>();
  let directory = "";

  const composition: Composition = {
    chain,
    proxy,

    configuration: (changes = {}) => ({
      ...localNetwork({ ...chain, rpcUrl: proxy.url, blockTimeMs: 200 }),
      payTo: "recipients",
      ...createAuthorizers([harnessAccounts.authorizer.privateKey]),
      ...changes,
    }),

    async openDirectory() {
      directory = makeDatabaseFolder();
    },

    databaseUrl: () => `sqlite:${join(directory, "ledger.sqlite")}`,

    async start({
      network = composition.configuration(),
      settleWaitMs = patientWaitMs,
      leaseMs,
      inspectEveryMs,
      log,
      signer = createLocalSigner(harnessAccounts.operator.privateKey),
      otherOperators = [],
      wrap,
      ways,
      serviceId,
    } = {}) {
      const service = await createWrappedService(wrap, {
        networks: [network],
        signers: [signer, ...otherOperators.map(createLocalSigner)],
        database: await openMigrated(composition.databaseUrl()),
        apiKeyPepper: "test",
        settleWaitMs,
        ways,
        ...(serviceId !== undefined && { serviceId }),
        ...(leaseMs !== undefined && { leaseMs }),
        ...(inspectEveryMs !== undefined && { inspectEveryMs }),
        logger:
          log === undefined
            ? createLogger("silent")
            : createLogger("trace", { write: (line: string) => void log.push(line) }),
      });
      services.add(service);
      const { organizations } = service;
      if ((await organizations.find("org")) === null) {
        await organizations.create({ id: "org", name: "Org" });
        await organizations.setRecipient("org", chain.network.name, harnessAccounts.recipient.address);
      }
      const { key } = await organizations.createKey("org", { scopes: ["verify", "settle"] });
      await service.start();
      const origin = await service.listen({ host: "127.0.0.1", port: 0 });
      return { service, url: `${origin}/v1`, key };
    },

    async stop({ service }) {
      services.delete(service);
      await service.close();
    },

    async stopAll() {
      for (const service of services) await service.close();
      services.clear();
      await rm(directory, { recursive: true });
    },

    async payment(
      payer = "funded",
      validForSeconds = 600,
      x402Version = 1,
      { straight } = { straight: false },
    ) {
      const { network, asset, facilitatorContract } = chain;
      const payTo = straight ? harnessAccounts.recipient.address : facilitatorContract;
      const signed = await signAs(payer, {
        asset,
        chainId: network.chainId,
        to: payTo,
        value: 10_000n,
        validBefore: (await chain.now()) + BigInt(validForSeconds),
      });
      return buildPaymentRequest({
        x402Version,
        network,
        asset,
        payTo,
        amount: 10_000n,
        resource: "https://merchant.example/resource",
        ...signed,
      });
    },

    post: ({ url, key }, operation, body) =>
      requestJson(`${url}/${operation}`, { method: "POST", headers: { authorization: key }, body }),

    async holdMining() {
      await chain.hold();
      return () => chain.release();
    },

    async untilSent() {
      while (!proxy.take().flat().includes("eth_sendRawTransaction")) {
        await sleep(5);
      }
    },

    async operatorTransactions() {
      const count = await node.request("eth_getTransactionCount", harnessAccounts.operator.address, "latest");
      return Number(count as Hex);
    },

    async balanceOf(account) {
      const data = `0x70a08231${account.slice(2).padStart(64, "0")}`;
      return BigInt((await node.request("eth_call", { to: chain.asset.address, data }, "latest")) as Hex);
    },

    recipientBalance: () => composition.balanceOf(harnessAccounts.recipient.address),

    async close() {
      await proxy.close();
      await chains?.stop();
    },
  };
  return composition;
}
