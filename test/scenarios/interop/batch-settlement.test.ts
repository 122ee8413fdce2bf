import { x402Facilitator } from "@x402/core/facilitator";
import type { FacilitatorClient } from "@x402/core/server";
import { toClientEvmSigner, toFacilitatorEvmSigner } from "@x402/evm";
import { BatchSettlementEvmScheme as BuyerScheme, computeChannelId } from "@x402/evm/batch-settlement/client";
import { BatchSettlementEvmScheme as FacilitatorScheme } from "@x402/evm/batch-settlement/facilitator";
import { BatchSettlementEvmScheme as ShopScheme } from "@x402/evm/batch-settlement/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import express from "express";
import {
  type Abi,
  type AbiEvent,
  type AbiFunction,
  createWalletClient,
  defineChain,
  erc20Abi,
  http,
  publicActions,
  toEventSelector,
  toFunctionSelector,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mockBatchSettlementAbi } from "../../../src/contracts/mockBatchSettlement.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { batchSettlementAddress } from "../../../src/methods/batch-settlement/contracts.ts";
import { type LoopbackServer, listenOnLoopback } from "../../support/loopback-server.ts";
import { goods } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { startTestHarness } from "../../support/service.ts";

/*
 * Scheme “batch-settlement” by the unmodified public packages, client, shop and facilitator, on a local chain: it has the contracts
 * where they know them.
 */

const network = "eip155:8453";
const methods = ["eip3009", "permit2"] as const;

let harness: RunningHarness;
let chain: HarnessChain;
let shop: LoopbackServer;
let client: ReturnType<typeof connect>;
let facilitator: FacilitatorClient;
/** The interfaces that the facilitator has used. */
const used = new Set<Abi>();
const shops = methods.map((method) => {
  const receiver = privateKeyToAccount(generatePrivateKey()).address;
  return { method, receiver, scheme: new ShopScheme(receiver) };
});

function connect({ rpcUrl, network: { chainId } }: HarnessChain) {
  return createWalletClient({
    account: privateKeyToAccount(generatePrivateKey()),
    chain: defineChain({
      ...{ id: chainId, name: "local", rpcUrls: { default: { http: [rpcUrl] } } },
      nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    }),
    transport: http(rpcUrl),
    pollingInterval: 20,
  }).extend(publicActions);
}

/** The public facilitator, with a key of its own for what shops leave to it. */
function createFacilitator(): FacilitatorClient {
  const signer = toFacilitatorEvmSigner({
    address: client.account.address,
    readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
    verifyTypedData: (args) => client.verifyTypedData(args as Parameters<typeof client.verifyTypedData>[0]),
    writeContract: (args) => {
      used.add(args.abi as Abi);
      return client.writeContract({ ...args, args: args.args ?? [] });
    },
    sendTransaction: (args) => client.sendTransaction(args),
    waitForTransactionReceipt: (args) => client.waitForTransactionReceipt(args),
    getCode: (args) => client.getCode(args),
  });
  const authorizer = privateKeyToAccount(generatePrivateKey());
  const scheme = new FacilitatorScheme(signer, {
    address: authorizer.address,
    signTypedData: (message) => authorizer.signTypedData(message as never),
  });
  const inProcess = new x402Facilitator().register(network, scheme);
  return {
    verify: (payload, requirements) => inProcess.verify(payload, requirements),
    settle: (payload, requirements) => inProcess.settle(payload, requirements),
    getSupported: async () =>
      inProcess.getSupported() as Awaited<ReturnType<FacilitatorClient["getSupported"]>>,
  };
}

beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"] });
  chain = runningChain(harness, "base");
  client = connect(chain);
  await chain.setBalance(client.account.address, 10n ** 18n);
  facilitator = createFacilitator();
  const { address, name, version } = chain.asset;
  const app = express();
  for (const { method, receiver, scheme } of shops) {
    const extra = { name, version, assetTransferMethod: method };
    const price = { asset: address, amount: "1000", extra };
    const accepts = { scheme: "batch-settlement", network, payTo: receiver, price } as const;
    const server = new x402ResourceServer(facilitator).register(network, scheme);
    app.use(paymentMiddleware({ [`GET /${method}`]: { accepts } }, server));
    app.get(`/${method}`, (_request, response) => void response.json(goods));
  }
  shop = await listenOnLoopback(app);
});
afterAll(async () => {
  await shop?.close();
  await harness?.close();
});

const balanceOf = (account: `0x${string}`) =>
  client.readContract({
    ...{ address: chain.asset.address, abi: erc20Abi },
    functionName: "balanceOf",
    args: [account],
  });

describe.each(shops)("deposits by $method", ({ method, receiver, scheme }) => {
  test("three purchases on one deposit, claimed, settled and refunded", async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    await chain.fund(account.address, 50_000n);
    if (method === "permit2") await chain.approvePermit2(account.address, 50_000n);
    const buyer = new x402Client().register(network, new BuyerScheme(toClientEvmSigner(account, client)));
    const pay = wrapFetchWithPayment(fetch, buyer);
    const receipts = [];
    for (let purchase = 1; purchase <= 3; purchase++) {
      const response = await pay(`${shop.origin}/${method}`);
      expect([response.status, await response.json()]).toEqual([200, goods]);
      receipts.push(decodePaymentResponseHeader(response.headers.get("PAYMENT-RESPONSE") ?? ""));
    }
    expect(receipts.map(({ amount }) => amount)).toEqual(["10000", "", ""]);
    expect(receipts.map(({ transaction }) => transaction !== "")).toEqual([true, false, false]);
    expect(await balanceOf(account.address)).toBe(40_000n);

    const [channel] = await scheme.getStorage().list();
    if (channel === undefined) throw new Error("the shop has no channel");
    const state = () =>
      client.readContract({
        ...{ address: batchSettlementAddress, abi: mockBatchSettlementAbi },
        functionName: "channels",
        args: [computeChannelId(channel.channelConfig, network)],
      });
    expect(await state()).toEqual([10_000n, 0n]);
    const manager = scheme.createChannelManager(facilitator, network, chain.asset.address);
    expect(await manager.claim()).toMatchObject([{ vouchers: 1 }]);
    expect(await state()).toEqual([10_000n, 3_000n]);
    await manager.settle();
    expect(await balanceOf(receiver)).toBe(3_000n);
    expect(await manager.refund()).toHaveLength(1);
    expect(await state()).toEqual([3_000n, 3_000n]);
    expect(await balanceOf(account.address)).toBe(47_000n);
  });
});

test("the stand-in has every function and event that the public packages know", () => {
  const hashes = (abi: Abi) =>
    abi.flatMap((item) => {
      if (item.type === "function") return [`${item.name} ${toFunctionSelector(item as AbiFunction)}`];
      return item.type === "event" ? [`${item.name} ${toEventSelector(item as AbiEvent)}`] : [];
    });
  const published = [...used].flatMap(hashes);
  expect(published.length).toBeGreaterThan(15);
  expect(published.filter((item) => !hashes(mockBatchSettlementAbi).includes(item))).toEqual([]);
});
