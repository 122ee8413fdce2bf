import { expect, onTestFinished, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { publish } from "../../../test/support/publish.ts";
import { authorizationUsedTopic, transferTopic } from "../../methods/on-chain/events.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { addressWord, type Hex, uintWord } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { createTimeline } from "../timeline/timeline.ts";
import { createUseFinder } from "./chain-questions.ts";

const { base } = networks;
const contract = `0x${"f0".repeat(20)}` as const;
const stranger = `0x${"5a".repeat(20)}` as const;
const nonce = `0x${"07".repeat(32)}` as const;
const transaction = `0x${"ab".repeat(32)}` as const;
const head = 100_000n;

const paymentOf = () => examplePayment({ payTo: contract, nonce });

/** A payment that was verified. */
function readPayment() {
  const serviceId = "the service";
  const timeline = createTimeline(serviceId);
  onTestFinished(() => timeline.close());
  const payment = paymentOf();
  const { settlementId } = payment;
  const about = { serviceId, requestId: "1", operation: "verify", settlementId, payment } as const;
  const result = { outcome: "invalid", reason: "invalid_transaction_state" } as const;
  publish("request", about);
  publish("answer", { ...about, status: 200, result, tookMs: 3 });
  return () => {
    const record = timeline.find(settlementId);
    if (record === undefined) throw new Error("the timeline has no such payment");
    return record;
  };
}

const hex = (number: bigint) => `0x${number.toString(16)}`;

function logsIn(block: bigint) {
  const payer: Hex = `0x${addressWord(testPayers.funded.address)}`;
  const common = {
    address: base.usdc.address,
    transactionHash: transaction,
    blockNumber: hex(block),
    blockHash: `0x${"bb".repeat(32)}`,
  };
  return [
    { ...common, topics: [authorizationUsedTopic, payer, nonce], data: "0x", logIndex: "0x4" },
    {
      ...common,
      logIndex: "0x5",
      data: `0x${uintWord(10_000n)}`,
      topics: [transferTopic, payer, `0x${addressWord(contract)}`],
    },
  ];
}

/** A chain whose authorization was used in a block, or not at all, and what it was asked. */
function chainWith(usedIn: bigint | undefined, { fails = false } = {}) {
  const asked: string[] = [];
  const ranges: bigint[] = [];
  const block = (number: bigint) => ({ number: hex(number), timestamp: "0x65000000", baseFeePerGas: "0x1" });
  return {
    asked,
    ranges,
    network: base,
    asset: base.usdc,
    facilitatorContract: contract,
    async ask(method: string, ...params: readonly unknown[]) {
      asked.push(method);
      if (fails) throw new UndeterminedError("No RPC endpoint of base answers");
      const [first] = params;
      if (method === "eth_call") return { result: `0x${uintWord(usedIn === undefined ? 0n : 1n)}` };
      if (method === "eth_getBlockByNumber") {
        return { result: block(first === "latest" ? head : BigInt(String(first))) };
      }
      if (method === "eth_getTransactionByHash") return { result: { from: stranger, to: base.usdc.address } };
      if (method === "eth_getTransactionReceipt") {
        const [use] = logsIn(usedIn ?? 0n);
        const place = { blockNumber: use?.blockNumber, blockHash: use?.blockHash };
        const logs = logsIn(usedIn ?? 0n);
        return { result: { ...place, transactionHash: transaction, status: "0x1", logs } };
      }
      const { fromBlock, toBlock } = first as { fromBlock: string; toBlock: string };
      const [from, to] = [BigInt(fromBlock), BigInt(toBlock)];
      ranges.push(to - from + 1n);
      const isThere = usedIn !== undefined && from <= usedIn && usedIn <= to;
      return { result: isThere ? logsIn(usedIn).slice(0, 1) : [] };
    },
  };
}

test("a use in recent blocks is found with its transaction, time, sender and transfer, and searched for once", async () => {
  const chain = chainWith(head - 5_000n);
  const find = createUseFinder(() => chain);
  const read = readPayment();
  const expected = {
    kind: "used",
    transaction,
    blockNumber: head - 5_000n,
    timestamp: 0x65000000n,
    sender: stranger,
    to: base.usdc.address,
    moved: { to: contract, value: 10_000n },
  };
  expect(await Promise.all([find(read()), find(read())])).toEqual([expected, expected]);
  const before = chain.asked.length;
  expect(await find(read())).toEqual(expected);
  expect(chain.asked).toHaveLength(before);
});

test("the search looks at a bounded number of blocks, in pieces that providers allow, and then gives up", async () => {
  const chain = chainWith(1n);
  const find = createUseFinder(() => chain);
  const read = readPayment();
  expect(await find(read())).toBeUndefined();
  expect(await find(read())).toBeUndefined();
  expect(chain.asked.length).toBeLessThanOrEqual(40);
  expect(chain.ranges.every((blocks) => blocks <= 2_000n)).toBe(true);
  expect(chain.ranges.reduce((sum, blocks) => sum + blocks)).toBe(32_000n);
});

test("an unused authorization costs no search of logs", async () => {
  const chain = chainWith(undefined);
  expect(await createUseFinder(() => chain)(readPayment()())).toBeUndefined();
  expect(chain.asked).toEqual(["eth_call", "eth_getBlockByNumber"]);
});

test("a chain that fails, answers nothing or is not there is no failure of the explanation", async () => {
  const payment = readPayment()();
  expect(await createUseFinder(() => chainWith(1n, { fails: true }))(payment)).toBeUndefined();
  expect(await createUseFinder(() => undefined)(payment)).toBeUndefined();
  const silent = { ...chainWith(1n), ask: () => new Promise<never>(() => {}) };
  const find = createUseFinder(() => silent, { timeoutMs: 20 });
  expect(await find(payment)).toBeUndefined();
});
