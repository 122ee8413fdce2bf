import { beforeEach, describe, expect, test } from "vitest";
import { accountOf } from "../../../../test/support/key-accounts.ts";
import { altering } from "../../../../test/support/misbehaviour.ts";
import { type Behaviour, sendJson } from "../../../../test/support/stub-node.ts";
import { useProxiedDeployment } from "../../../../test/support/use-proxied-deployment.ts";
import { createChain } from "../../../chain/create-chain.ts";
import { type Hex, uintWord } from "../../../protocol/hex.ts";
import { UndeterminedError } from "../../../util/errors.ts";
import { provesForwarding, receivedOf } from "../../on-chain/payouts.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
import { findDirectSubmission } from "./eip3009-settling.ts";
import { diagnose } from "./eip3009-state.ts";
import { encodeForwardReceived, forwardTransaction, settleTransaction } from "./eip3009-transaction.ts";

const { deployment, proxy, chain, forward: well, startBlock, sendAsOperator } = useProxiedDeployment();

/** Looks from the block before the test to the newest one. */
async function find(
  call: SettleCall,
  {
    fromBlock = startBlock(),
    toBlock,
    ...changes
  }: Partial<SettleCall["payment"]> & { fromBlock?: bigint; toBlock?: bigint } = {},
) {
  const { number: newest } = await deployment.newestBlock();
  proxy.batches.length = 0;
  const payment = { ...call.payment, ...changes };
  return findDirectSubmission(chain, { ...call, payment, fromBlock, toBlock: toBlock ?? newest });
}

const methods = () => proxy.batches.map((batch) => batch.map(({ method }) => method));

async function settle(calls: readonly SettleCall[]) {
  const { succeeded } = await sendAsOperator(settleTransaction(calls, deployment.network));
  expect(succeeded).toBe(true);
}

async function failureOf(promise: Promise<unknown>): Promise<string | undefined> {
  const error = await promise.catch((error: unknown) => error);
  if (!(error instanceof UndeterminedError)) throw new Error("it did not fail as it should");
  return error.hints[0];
}

describe("what a third party submitted straight to the token", () => {
  test("is proven, with the place of its transfer, and can be forwarded once", async () => {
    const call = await deployment.pay();
    await deployment.mine(3);
    const { transactionHash, blockNumber, blockHash, logs } = await deployment.submitDirectly(call);
    await deployment.mine(3);
    expect(logs).toHaveLength(2);
    expect(await find(call)).toEqual({
      transactionHash,
      logIndex: logs[1]?.logIndex,
      blockNumber,
      blockHash,
    });
    expect(methods()).toEqual([
      ["eth_call"],
      ["eth_getBlockByNumber", "eth_getLogs"],
      ["eth_getTransactionReceipt"],
    ]);

    const forward = receivedOf(call);
    const { data, gas } = forwardTransaction(call);
    const { facilitatorContract } = deployment.network;
    const receipt = await deployment.send(facilitatorContract, data, gas);
    expect(receipt.status).toBe("success");
    expect(receipt.gasUsed).toBeLessThan(165_000n);
    const [ours] = await chain.receipts([receipt.transactionHash]);
    if (!ours) throw new Error("no receipt");
    expect(provesForwarding("Forwarded", ours, facilitatorContract, forward)).toBe(true);
    expect(provesForwarding("Forwarded", ours, facilitatorContract, { ...forward, value: 1n })).toBe(false);
    expect((await deployment.send(facilitatorContract, encodeForwardReceived(call), gas)).status).toBe(
      "reverted",
    );
  });

  test("is proven for a contract wallet, and in whatever casing it is asked for", async () => {
    const wallet = await deployment.createWallet("wallet owner");
    const call = await deployment.pay({ payer: "wallet owner", from: wallet });
    const { transactionHash } = await deployment.submitDirectly(call);
    const upper = (hex: Hex): Hex => `0x${hex.slice(2).toUpperCase()}`;
    expect(
      await find(call, {
        payer: upper(wallet),
        nonce: upper(call.payment.nonce),
        asset: upper(call.payment.asset),
      }),
    ).toMatchObject({ transactionHash });
  });

  test("is proven for two payers that chose the same nonce", async () => {
    const authorizationNonce: Hex = `0x${"12".repeat(32)}`;
    const [first, second] = [
      await deployment.pay({ payer: "alice", authorizationNonce }),
      await deployment.pay({ payer: "bob", authorizationNonce }),
    ];
    const { logs } = await deployment.sendTogether(
      [first, second].map((call) => ({ to: deployment.usdc, data: deployment.encodeDirectSubmission(call) })),
    );
    expect(await find(first)).toMatchObject({ logIndex: logs[1]?.logIndex });
    expect(await find(second)).toMatchObject({ logIndex: logs[3]?.logIndex });
  });

  test("is proven for each of several in one transaction, beside a cancellation", async () => {
    const [first, second, cancelled] = [
      await deployment.pay({ payer: "alice", funds: 50_000n }),
      await deployment.pay({ payer: "alice" }),
      await deployment.pay({ payer: "alice" }),
    ];
    const { logs } = await deployment.sendTogether([
      { to: deployment.usdc, data: deployment.encodeDirectSubmission(first) },
      { to: deployment.usdc, data: await deployment.encodeCancellation("alice", cancelled) },
      { to: deployment.usdc, data: deployment.encodeDirectSubmission(second) },
    ]);
    expect(await find(first)).toMatchObject({ logIndex: logs[1]?.logIndex });
    expect(await find(second)).toMatchObject({ logIndex: logs[4]?.logIndex });
    expect(await find(cancelled)).toBe("cancelled");
  });
});

describe("nothing is proven", () => {
  test("by a cancellation while the funds of another payer are stranded", async () => {
    const stranded = await deployment.pay();
    await deployment.submitDirectly(stranded);
    const call = await deployment.pay({ payer: "mallory" });
    await deployment.send(deployment.usdc, await deployment.encodeCancellation("mallory", call));
    expect(await find(call)).toBe("cancelled");
    // What state alone would have said.
    expect((await diagnose(chain, call)).authorizationUsed).toBe(true);
  });

  test("by a cancellation right before a transfer of the payer's own, in one transaction", async () => {
    const paid = await deployment.pay({ payer: "mallory", funds: 20_000n });
    const call = await deployment.pay({ payer: "mallory" });
    await deployment.sendTogether([
      { to: deployment.usdc, data: await deployment.encodeCancellation("mallory", call) },
      { to: deployment.usdc, data: deployment.encodeDirectSubmission(paid) },
    ]);
    expect(await find(call)).toBe("cancelled");
    expect(await find(paid)).toMatchObject({ blockNumber: expect.any(BigInt) });
  });

  test("by a settlement, alone or in a batch", async () => {
    const [single, first, second] = [await deployment.pay(), await deployment.pay(), await deployment.pay()];
    await settle([single]);
    await settle([first, second]);
    for (const call of [single, first, second]) expect(await find(call)).toBeNull();
  });

  test("while it is not used, which takes one request and no logs", async () => {
    const call = await deployment.pay();
    await deployment.submitDirectly(await deployment.pay());
    expect(await find(call)).toBeNull();
    expect(methods()).toEqual([["eth_call"]]);
  });

  test("of blocks after those that were asked for", async () => {
    const call = await deployment.pay();
    await deployment.submitDirectly(call);
    const { number: newest } = await deployment.newestBlock();
    expect(await find(call, { toBlock: newest - 1n })).toBeNull();
    expect(await find(call, { toBlock: newest })).not.toBeNull();
  });

  test("when another value than the claimed one came in", async () => {
    const call = await deployment.pay();
    await deployment.submitDirectly(call);
    expect(await find(call, { limit: call.payment.limit - 1n })).toBeNull();
  });

  test("by an authorization that paid another account", async () => {
    const elsewhere = createChain({
      network: { ...deployment.network, facilitatorContract: accountOf("other contract").address },
      operator: deployment.operator,
    });
    const call = await deployment.pay();
    await deployment.submitDirectly(call);
    const { number: newest } = await deployment.newestBlock();
    const query = { ...call, fromBlock: startBlock(), toBlock: newest };
    expect(await findDirectSubmission(elsewhere, query)).toBeNull();
    elsewhere.close();
  });
});

describe("nothing is told", () => {
  let call: SettleCall;
  beforeEach(async () => {
    call = await deployment.pay();
    await deployment.submitDirectly(call);
  });

  test("when it was used before the blocks that were asked for", async () => {
    const { number: newest } = await deployment.newestBlock();
    await deployment.mine(1);
    expect(await failureOf(find(call, { fromBlock: newest + 1n }))).toMatch(
      /is used by block \d+, and no log since \d+ says how/,
    );
  });

  test("when the node gives no logs, though the authorization is used", async () => {
    proxy.behave(altering(well, "eth_getLogs", () => []));
    await failureOf(find(call));
  });

  test("when the node has not seen the last block", async () => {
    const { number: newest } = await deployment.newestBlock();
    expect(await failureOf(find(call, { toBlock: newest + 1n }))).toContain("has not seen block");
  });

  test.each<[string, unknown]>([
    ["null", null],
    ["something else", { status: "0x1" }],
  ])("when the receipt is %s", async (_, receipt) => {
    proxy.behave(altering(well, "eth_getTransactionReceipt", () => receipt));
    await failureOf(find(call));
  });

  test("when the receipt is of another block than the log", async () => {
    proxy.behave(
      altering(well, "eth_getTransactionReceipt", (receipt) => ({
        ...Object(receipt),
        blockHash: `0x${"12".repeat(32)}`,
      })),
    );
    expect(await failureOf(find(call))).toContain("different blocks");
  });

  test.each<[string, string]>([
    ["of another block", `0x${uintWord(1n)}${uintWord(1n)}${uintWord(1n)}${uintWord(0n)}`],
    ["of no token", `0x${uintWord(0n).repeat(4)}`],
    ["of nothing", "0x"],
  ])("when the state is %s", async (_, state) => {
    proxy.behave(altering(well, "eth_call", () => state));
    await failureOf(find(call));
  });

  test("when the state is of nothing that is a token", async () => {
    const { number: newest } = await deployment.newestBlock();
    proxy.behave(altering(well, "eth_call", () => `0x${uintWord(newest)}${uintWord(0n).repeat(3)}`));
    expect(await failureOf(find(call))).toContain("no such contract");
  });
});

describe("a node that has forgotten old state", () => {
  const forgetful: Behaviour = (calls, response, body) =>
    calls.some(({ method }) => method === "eth_call")
      ? sendJson(
          response,
          calls.map(({ id, method }) =>
            method === "eth_call"
              ? { id, error: { code: -32000, message: "missing trie node" } }
              : { id, result: { number: "0xffff", timestamp: "0x1", baseFeePerGas: "0x1" } },
          ),
        )
      : well(calls, response, body);

  test("still proves by its logs", async () => {
    const call = await deployment.pay();
    const { transactionHash } = await deployment.submitDirectly(call);
    proxy.behave(forgetful);
    expect(await find(call)).toMatchObject({ transactionHash });
  });

  test("still finds nothing where there is nothing", async () => {
    const call = await deployment.pay();
    proxy.behave(forgetful);
    expect(await find(call)).toBeNull();
  });
});
