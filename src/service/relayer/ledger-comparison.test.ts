import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { hashOf, operator } from "../../../test/support/ledger/test-ledger.ts";
import type { Chain } from "../../chain/chain.ts";
import type { ConcludedTransaction, TxNonceRange } from "../../ledger/settlement.ts";
import { networks } from "../../protocol/networks.ts";
import { createVanishedTransactions, type VanishedTransactions } from "./ledger-comparison.ts";
import type { TransactionStore } from "./slot.ts";

/** Which fork of the chain holds each block: reorganizations replace those at the end. */
let forks: string[];
let decided: Map<number, ConcludedTransaction>;
let reopened: number[];
let asked: TxNonceRange[];
let beforeAnswer: () => void;
let filled: number[];
/** The operator's transactions on the chain: how many, and which have a receipt. */
let mined: { count: number | undefined; hashes: Set<string> };
let transactions: VanishedTransactions;

const blockHash = (number: number) => hashOf(`block ${number} of ${forks[number]}`);

/** Replaces the blocks from one on, and adds one. */
function reorganize(from: number, fork: string): void {
  forks = [...forks.slice(0, from), ...Array(forks.length - from + 1).fill(fork)];
}

/** Records that a transaction was decided by a block, as the chain is now. */
function decide(txNonce: number, block: number): void {
  while (forks.length <= block) forks.push("first");
  const hash = hashOf(`transaction ${txNonce}`);
  const mined = { hash, blockNumber: BigInt(block), blockHash: blockHash(block) };
  decided.set(txNonce, { txNonce, ...mined, concludedAt: Date.now(), hasThisTxNonce: true });
}

/** One look, while nothing is under way. */
async function look(): Promise<number[]> {
  reopened = [];
  await transactions.find({ next: decided.size, lowestOpen: undefined });
  return reopened;
}

beforeEach(() => {
  forks = ["first", "first"];
  decided = new Map();
  asked = [];
  filled = [];
  mined = { count: undefined, hashes: new Set() };
  beforeAnswer = () => {};
  const chain = {
    network: { ...networks.base, blockTimeMs: 1, confirmations: 1 },
    head: async () => ({ number: BigInt(forks.length - 1) }),
    async blockHash(number: bigint) {
      const answer = number < forks.length ? blockHash(Number(number)) : null;
      beforeAnswer();
      return answer;
    },
    transactionCount: async () => mined.count ?? decided.size,
    receipts: async (hashes: readonly string[]) =>
      hashes.map((hash) => (mined.hashes.has(hash) ? { hash } : null)),
  } as unknown as Chain;
  const store = {
    async concluded(range: TxNonceRange) {
      asked.push(range);
      const { from = 0, below = Number.POSITIVE_INFINITY, limit } = range;
      return [...decided.values()]
        .filter(({ txNonce }) => txNonce >= from && txNonce < below)
        .sort((a, b) => b.txNonce - a.txNonce)
        .slice(0, limit);
    },
    async reopen(some: readonly ConcludedTransaction[]) {
      reopened.push(...some.map(({ txNonce }) => txNonce));
    },
  } as unknown as TransactionStore;
  const fill = async (txNonce: number) => {
    filled.push(txNonce);
    return true;
  };
  transactions = createVanishedTransactions({ chain, store, account: operator, now: Date.now, fill });
});

/** Decides again, in its new block, what was reopened. */
const decideAgain = (some: readonly number[]) => {
  for (const txNonce of some) decide(txNonce, forks.length);
};

describe("a transaction whose block has vanished is sent again", () => {
  test("although a later one is mined since, at the first look of a process", async () => {
    decide(0, 2);
    reorganize(2, "second");
    decide(1, 4);
    expect(await look()).toEqual([0]);
  });

  test("although a later one is mined since, where both were decided between two looks", async () => {
    decide(0, 2);
    expect(await look()).toEqual([]);
    decide(1, 3);
    reorganize(3, "second");
    decide(2, 5);
    expect(await look()).toEqual([1]);
  });

  test("although it was seen in its block before, and a later one is mined since", async () => {
    decide(0, 2);
    decide(1, 3);
    expect(await look()).toEqual([]);
    reorganize(2, "second");
    decide(2, 5);
    expect((await look()).sort()).toEqual([0, 1]);
    decideAgain([0, 1]);
    expect(await look()).toEqual([]);
  });

  test("although more than one page of others was decided after it", async () => {
    decide(0, 2);
    reorganize(2, "second");
    for (let txNonce = 1; txNonce <= 200; txNonce++) decide(txNonce, 4);
    expect(await look()).toEqual([0]);
  });

  test("although the blocks are replaced in the middle of a look", async () => {
    decide(0, 2);
    let answers = 0;
    beforeAnswer = () => {
      if (++answers === 2) reorganize(2, "second");
    };
    expect(await look()).toEqual([]);
    decide(1, 4);
    expect(await look()).toEqual([0]);
  });

  test("once the node has the blocks, when it was behind at first", async () => {
    decide(0, 2);
    const ahead = forks;
    forks = ["first", "first"];
    expect(await look()).toEqual([]);
    forks = ahead;
    reorganize(2, "second");
    decide(1, 4);
    expect(await look()).toEqual([0]);
  });
});

test("what was seen in its block is not read again while that block is there", async () => {
  for (let txNonce = 0; txNonce < 10; txNonce++) decide(txNonce, 2);
  await look();
  decide(10, 3);
  asked = [];
  expect(await look()).toEqual([]);
  expect(asked).toEqual([{ limit: 1 }, { from: 10, limit: 64 }]);
});

describe("a txNonce that the chain has not mined, below all that is open,", () => {
  /** Long enough for the gap to be believed. */
  async function lookTwice(): Promise<void> {
    await look();
    await sleep(10);
    await look();
  }

  beforeEach(() => {
    decide(0, 2);
    decide(1, 3);
    mined.count = 1;
    mined.hashes.add(hashOf("transaction 0"));
  });

  test("is filled although its payment was made by a transaction that is mined, with another txNonce", async () => {
    const [paidBy, paid] = [decided.get(0), decided.get(1)];
    if (paidBy === undefined || paid === undefined) throw new Error("nothing was decided");
    decided.set(1, { ...paidBy, txNonce: 1, hasThisTxNonce: false });
    await lookTwice();
    expect(filled).toEqual([1]);
    expect(reopened).toEqual([]);
  });

  test("is left alone where its own transaction is mined: the node contradicts itself", async () => {
    mined.hashes.add(hashOf("transaction 1"));
    await lookTwice();
    expect(filled).toEqual([]);
  });
});
