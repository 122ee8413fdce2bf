import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createLocalRpc, type LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { quantity } from "../../protocol/hex.ts";
import type { LocalNode } from "../nodes/nodes.ts";
import { resolveFacilitatorContracts } from "../setup/addresses.ts";
import { type Chains, startChains } from "../setup/chains.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import { createChainFaults } from "./chain-faults.ts";
import { createFaultProxy, createFaults, type FaultProxy } from "./create-faults.ts";
import { createFaultSetters, type Faults } from "./faults.ts";

let chains: Chains;
let chain: HarnessChain;
let proxy: FaultProxy;
let faults: Faults;
/** As the service sees the node. */
let service: LocalRpc;
const { operator, treasury, recipient } = harnessAccounts;

beforeAll(async () => {
  chains = await startChains({ networks: ["base"], facilitatorContracts: resolveFacilitatorContracts() });
  if (chains.chains.base === undefined) throw new Error("base is not running");
  chain = chains.chains.base;
  proxy = await createFaultProxy({ target: chain.rpcUrl });
  faults = createFaultSetters(
    createFaults({ networks: { base: { chain, proxy } }, operators: [operator.address], serviceId: "test" }),
  );
  service = createLocalRpc(proxy.url);
  await chain.mine(8);
});
afterEach(() => faults.clear());
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await chains.stop();
});

const send = (from: string = treasury.address) =>
  chain.node.request("eth_sendTransaction", {
    from,
    to: recipient.address,
    value: "0x1",
    gas: "0x5208",
    maxFeePerGas: "0x3b9aca00",
  });
const receiptOf = (hash: unknown, rpc: LocalRpc = chain.node) =>
  rpc.request("eth_getTransactionReceipt", hash);
const headOf = async (rpc: LocalRpc) => Number(await rpc.request("eth_blockNumber"));
const baseFee = async () =>
  BigInt(
    Reflect.get(Object(await chain.node.request("eth_getBlockByNumber", "latest", false)), "baseFeePerGas"),
  );
async function mined(): Promise<unknown> {
  const hash = await send();
  await expect.poll(() => receiptOf(hash)).not.toBeNull();
  return hash;
}

describe("the connection", () => {
  test("to a stale node: head, state and receipts are those of some blocks ago, and what is sent arrives", async () => {
    const transactions = await chain.node.request("eth_getTransactionCount", treasury.address, "latest");
    await chain.node.request("evm_mine");
    const before = await headOf(chain.node);
    await faults.on("base").staleHead(5);
    const hash = await mined();
    expect((await headOf(chain.node)) - before).toBeLessThan(5);
    expect(await headOf(service)).toBeLessThanOrEqual((await headOf(chain.node)) - 4);
    expect(await receiptOf(hash, service)).toBeNull();
    expect(await service.request("eth_getTransactionByHash", hash)).toBeNull();
    expect(await service.request("eth_getTransactionCount", treasury.address, "latest")).toBe(transactions);
    expect(await service.request("eth_getTransactionCount", treasury.address, "pending")).toBe(transactions);
    const block = await service.request("eth_getBlockByNumber", "latest", false);
    expect(Number(Reflect.get(Object(block), "number"))).toBeLessThan(before);
    const newest = `0x${(await headOf(chain.node)).toString(16)}`;
    expect(await service.request("eth_getBlockByNumber", newest, false)).toBeNull();
    await faults.clear();
    expect(await receiptOf(hash, service)).not.toBeNull();
  });

  test("that tells of the receipt of another transaction, under its own hash or the one that was asked for", async () => {
    const [first, second] = [await mined(), await mined()];
    const plain = await faults.on("base", { method: "eth_getTransactionReceipt" }).receiptOfAnother();
    expect(await receiptOf(second, service)).toMatchObject({ transactionHash: first });
    await plain.remove();
    await faults.on("base").receiptOfAnother({ disguised: true });
    const [disguised, real] = [await receiptOf(second, service), await receiptOf(first)];
    expect(disguised).toMatchObject({
      transactionHash: second,
      blockHash: Reflect.get(Object(real), "blockHash"),
    });
    expect(await service.request("eth_chainId")).toBe("0x2105");
  });
});

describe("the chain", () => {
  test("holds its blocks until the last hold is removed, and mines as before then", async () => {
    const first = await faults.chain("base").holdBlocks();
    const second = await faults.chain("base").holdBlocks();
    const hash = await send();
    const head = await headOf(chain.node);
    await first.remove();
    await first.remove();
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(await headOf(chain.node)).toBe(head);
    expect(await receiptOf(hash)).toBeNull();
    await second.remove();
    await expect.poll(() => receiptOf(hash)).not.toBeNull();
    await mined();
    const idle = await headOf(chain.node);
    await expect.poll(() => headOf(chain.node)).toBeGreaterThan(idle + 1);
  });

  test("drops what waits to be mined", async () => {
    await using _ = await faults.chain("base").holdBlocks();
    const [one, two] = [await send(), await send()];
    await faults.chain("base").drop(two as `0x${string}`);
    await faults.chain("base").drop();
    await chain.mine();
    expect([await receiptOf(one), await receiptOf(two)]).toEqual([null, null]);
    await expect(faults.chain("base").drop(two as `0x${string}`)).rejects.toThrow(/is waiting on base/);
  });

  test("loses its newest blocks and their transactions", async () => {
    const hash = await mined();
    await faults.chain("base").reorg(2);
    expect(await receiptOf(hash)).toBeNull();
    await expect(faults.chain("base").reorg(63)).rejects.toThrow(/too few for a reorganization/);
  });

  test("loses them although the node ends a block when they are to be replaced", async () => {
    const hash = await mined();
    const replaced: unknown[] = [];
    const node: LocalNode = {
      ...chain.node,
      async request(method, ...parameters) {
        if (method === "anvil_reorg" && replaced.push(parameters[0]) === 1)
          await chain.node.request("evm_mine");
        return chain.node.request(method, ...parameters);
      },
    };
    const reorganize = createChainFaults({ chain: { ...chain, node }, operators: [] });
    const { transactions } = await reorganize({ network: "base", kind: "reorg", depth: 1 });
    expect(replaced.length).toBe(2);
    expect(transactions).toContain(hash);
    expect(await receiptOf(hash)).toBeNull();
  });

  test("has the same time after reorganizations", async () => {
    const ahead = async () => Number(await chain.now()) - Date.now() / 1_000;
    await chain.mine();
    const before = await ahead();
    for (let count = 0; count < 3; count++) {
      // Blocks of a second each, so that time can be lost.
      await chain.advanceTime(20);
      await faults.chain("base").reorg(1);
    }
    await chain.mine();
    expect(Math.round(((await ahead()) - before) / 20)).toBe(3);
  });

  test("holds each transaction once, and what it did, after blocks were replaced while it was sent", async () => {
    await chain.mine(10);
    const first = await headOf(chain.node);
    const before = BigInt(String(await chain.node.request("eth_getBalance", recipient.address, "latest")));
    let replacing = true;
    await chain.node.request("anvil_impersonateAccount", operator.address);
    // Of two that are sent at once from one account, with the same nonce, one is refused.
    const sending = Array.from({ length: 6 }, async (_, index) => {
      while (replacing) await send(index % 2 === 0 ? treasury.address : operator.address).catch(() => {});
    });
    for (let count = 0; count < 25; count++) await faults.chain("base").reorg(1 + (count % 4));
    replacing = false;
    await Promise.all(sending);
    await chain.node.request("anvil_stopImpersonatingAccount", operator.address);
    await chain.mine();

    const hashes: unknown[] = [];
    for (let number = first - 5; number <= (await headOf(chain.node)); number++) {
      const block = await chain.node.request("eth_getBlockByNumber", `0x${number.toString(16)}`, false);
      hashes.push(...Object(block).transactions);
    }
    expect(hashes.length).toBe(new Set(hashes).size);
    const balance = BigInt(String(await chain.node.request("eth_getBalance", recipient.address, "latest")));
    expect(balance - before).toBe(BigInt(hashes.length));
  });

  test("asks for more, until that is removed", async () => {
    const before = await baseFee();
    const spike = await faults.chain("base").baseFee(10n ** 12n);
    expect(await baseFee()).toBe(10n ** 12n);
    const head = await headOf(chain.node);
    await chain.mine(3);
    expect(await baseFee()).toBe(10n ** 12n);
    await expect.poll(() => headOf(chain.node)).toBeGreaterThan(head + 4);
    expect(await baseFee()).toBe(10n ** 12n);
    const hash = await chain.node.request("eth_sendTransaction", {
      from: treasury.address,
      to: recipient.address,
      maxFeePerGas: quantity(2n * 10n ** 12n),
    });
    await expect.poll(() => receiptOf(hash)).not.toBeNull();
    expect(await baseFee()).toBe(10n ** 12n);
    await spike.remove();
    // It moves again from there, down with each empty block.
    expect(await baseFee()).toBeLessThanOrEqual(before);
    await mined();
  });

  test("leaves the operator without gas money, until that is removed", async () => {
    const balance = () => chain.node.request("eth_getBalance", operator.address, "latest");
    const before = await balance();
    await faults.chain("base").emptyOperator();
    expect(await balance()).toBe("0x0");
    await faults.clear();
    expect(await balance()).toBe(before);
  });
});

test("what is still being set when all are cleared is cleared too", async () => {
  const setting = faults.chain("base").holdBlocks();
  await faults.clear();
  await setting;
  expect(await faults.list()).toEqual([]);
  await mined();
});

test("of several base fees the one set last counts, and the one before it when that is removed", async () => {
  const before = await baseFee();
  const [first, second, third] = [
    await faults.chain("base").baseFee(10n ** 12n),
    await faults.chain("base").baseFee(10n ** 13n),
    await faults.chain("base").baseFee(10n ** 14n),
  ];
  await second.remove();
  expect(await baseFee()).toBe(10n ** 14n);
  await third.remove();
  expect(await baseFee()).toBe(10n ** 12n);
  await first.remove();
  expect(await baseFee()).toBeLessThanOrEqual(before);
});

test("faults of one kind may overlap, and end in any order", async () => {
  const base = faults.chain("base");
  const [fee, balance] = [
    await baseFee(),
    await chain.node.request("eth_getBalance", operator.address, "latest"),
  ];
  const set = [
    await base.emptyOperator(),
    await base.emptyOperator(),
    await base.baseFee(10n ** 12n),
    await base.baseFee(10n ** 13n),
  ];
  expect(await baseFee()).toBe(10n ** 13n);
  for (const fault of set) await fault.remove();
  expect(await baseFee()).toBeLessThanOrEqual(fee);
  expect(await chain.node.request("eth_getBalance", operator.address, "latest")).toBe(balance);
});

describe("what is set", () => {
  test("is listed with how often it has hit, and not any more when it is removed or disposed of", async () => {
    const error = await faults.on("base", { method: "eth_chainId", times: 1 }).error(-32_000, "no");
    {
      await using held = await faults.chain("base").holdBlocks();
      await expect(service.request("eth_chainId")).rejects.toThrow("no");
      expect(await service.request("eth_chainId")).toBe("0x2105");
      expect(await faults.list()).toEqual([
        {
          id: error.id,
          network: "base",
          kind: "error",
          method: "eth_chainId",
          times: 1,
          code: -32_000,
          message: "no",
          fired: 1,
          usedUp: true,
        },
        { id: held.id, network: "base", kind: "hold-blocks", fired: 1 },
      ]);
    }
    await faults.chain("base").reorg(1);
    expect((await faults.list()).map(({ id }) => id)).toEqual([error.id]);
    await error.remove();
    expect(await faults.list()).toEqual([]);
  });

  test("works from the call on: its promise need not be awaited", async () => {
    const setting = faults.on("base").error(-1, "at once");
    await expect(service.request("eth_chainId")).rejects.toThrow("at once");
    await setting;
  });

  test("is refused with everything that is wrong, and for a network that is not running", async () => {
    await expect(faults.on("base", { method: "", nth: 0 }).delay(-1)).rejects.toThrow(
      /method: .*\nnth: .*\nms: /,
    );
    await expect(faults.on("polygon").reset()).rejects.toThrow(
      "network: polygon is not running; running: base",
    );
    expect(await faults.list()).toEqual([]);
  });
});
