import { serializeTransaction } from "viem/utils";
import { afterEach, expect, test } from "vitest";
import { addressOf, hashOf, operator, paymentOf } from "../../../test/support/ledger/test-ledger.ts";
import type { Chain } from "../../chain/chain.ts";
import type { EndpointReceipt } from "../../chain/logs-and-receipts.ts";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { createLogger } from "../../observe/log/logger.ts";
import { networks } from "../../protocol/networks.ts";
import { type Batch, createOutcomes, type Slot, type TransactionStore } from "./slot.ts";
import { createWatcher, type Watcher } from "./watcher.ts";

const network = {
  ...networks.base,
  facilitatorContract: addressOf(0xc0),
  rpcUrls: ["http://127.0.0.1:1"] as const,
  assets: [networks.base.usdc],
  blockTimeMs: 4,
  confirmations: 1,
  maxFeePerGas: 1n,
};

function batchOf(txNonce: number): Batch {
  return {
    attempt: {
      hash: hashOf(`transaction ${txNonce}`),
      chainId: network.chainId,
      operator,
      txNonce,
      kind: "settle",
      raw: serializeTransaction({ chainId: network.chainId, nonce: txNonce, maxFeePerGas: 1n }),
      maxFeePerGas: 1n,
      maxPriorityFeePerGas: 1n,
      createdAt: 0,
    },
    settlements: [paymentOf(txNonce)],
  };
}

let watcher: Watcher | undefined;
afterEach(() => watcher?.stop());

test("a transaction whose receipt proves nothing does not keep the next one from being replaced", async () => {
  const open = [batchOf(0), batchOf(1)];
  const receiptWithoutProof: EndpointReceipt = {
    endpoint: "1",
    hash: hashOf("transaction 0"),
    succeeded: true,
    blockNumber: 5n,
    blockHash: hashOf("block 5"),
    logs: [],
    gasCost: undefined,
  };
  // Of chain and store nothing is needed but what a round over two transactions asks.
  const chain = {
    network,
    receipts: async (hashes: readonly string[]) =>
      hashes.map((hash) => (hash === receiptWithoutProof.hash ? receiptWithoutProof : null)),
    transactionCount: async () => 1,
    broadcast: async () => {},
    endpoints: () => [{}],
  } as unknown as Chain;
  const noteMined = async () => {};
  const store = { open: async () => open, concluded: async () => [], next: async () => 2, noteMined };
  const replaced: number[] = [];
  watcher = createWatcher({
    chain,
    ways: waysToPay,
    store: store as unknown as TransactionStore,
    outcomes: createOutcomes(),
    account: operator,
    now: () => Date.now(),
    log: createLogger("silent"),
    onRoom: () => {},
    replace: async ({ txNonce }: Slot) => void replaced.push(txNonce),
    fill: async () => null,
  });
  await watcher.start();
  await expect.poll(() => replaced.length).toBeGreaterThan(2);
  expect(new Set(replaced)).toEqual(new Set([1]));
});

test("a busy operator, whose txNonces are taken and mined while they are compared, has no gap", async () => {
  // Each question finds one more transaction signed, mined and decided.
  let decided = 100;
  let comparisons = 0;
  const chain = {
    network,
    transactionCount: async () => decided++,
    receipts: async () => [],
  } as unknown as Chain;
  const store = {
    open: async () => [],
    concluded: async () => [],
    reopen: async () => {},
    next: async () => {
      comparisons++;
      return decided++;
    },
  };
  const filled: number[] = [];
  watcher = createWatcher({
    chain,
    ways: waysToPay,
    store: store as unknown as TransactionStore,
    outcomes: createOutcomes(),
    account: operator,
    now: () => Date.now(),
    log: createLogger("silent"),
    onRoom: () => {},
    replace: async () => undefined,
    fill: async (txNonce) => {
      filled.push(txNonce);
      return null;
    },
  });
  await watcher.start();
  await expect.poll(() => comparisons).toBeGreaterThan(10);
  expect(filled).toEqual([]);
});
