import { encodeFunctionData } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { accountOf } from "../../../test/support/key-accounts.ts";
import { altering } from "../../../test/support/misbehaviour.ts";
import { useProxiedDeployment } from "../../../test/support/use-proxied-deployment.ts";
import { mockUsdcAbi } from "../../contracts/mockUsdc.ts";
import type { Hex } from "../../protocol/hex.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { findDirectSubmission } from "../exact-eip3009/on-chain/eip3009-settling.ts";
import { forwardTransaction, settleTransaction } from "../exact-eip3009/on-chain/eip3009-transaction.ts";
import type { SettleCall } from "./settling.ts";
import { findStrandedTransfers } from "./stranded-transfers.ts";

const { deployment, proxy, chain, forward: well, startBlock, sendAsOperator } = useProxiedDeployment();

async function list() {
  const { number: newest } = await deployment.newestBlock();
  proxy.batches.length = 0;
  return findStrandedTransfers(chain, deployment.usdc, startBlock() + 1n, newest);
}

async function settle(calls: readonly SettleCall[]) {
  const { succeeded } = await sendAsOperator(settleTransaction(calls, deployment.network));
  expect(succeeded).toBe(true);
}

const forward = (call: SettleCall) => {
  const { data, gas } = forwardTransaction(call);
  return deployment.send(deployment.network.facilitatorContract, data, gas);
};

const callToken = (functionName: "mint" | "transferFrom", args: readonly unknown[]): Hex =>
  encodeFunctionData({ abi: mockUsdcAbi, functionName, args } as Parameters<typeof encodeFunctionData>[0]);

test("what came in by itself is listed, and nothing that was settled or forwarded", async () => {
  await settle([await deployment.pay()]);
  const stranded = await deployment.pay({ value: 7n });
  const first = await deployment.submitDirectly(stranded);
  await settle([await deployment.pay(), await deployment.pay(), await deployment.pay({ funds: 1n })]);
  const forwarded = await deployment.pay({ value: 8n });
  await deployment.submitDirectly(forwarded);
  const cancelled = await deployment.pay({ payer: "mallory" });
  await deployment.send(deployment.usdc, await deployment.encodeCancellation("mallory", cancelled));
  const byMistake = await deployment.send(
    deployment.usdc,
    callToken("mint", [deployment.network.facilitatorContract, 9n]),
  );
  expect((await forward(forwarded)).status).toBe("success");
  // Anyone can send nothing in another's name, and some do.
  await deployment.send(
    deployment.usdc,
    callToken("transferFrom", [accountOf("victim").address, deployment.network.facilitatorContract, 0n]),
  );

  expect(await list()).toEqual([
    {
      transactionHash: first.transactionHash,
      logIndex: first.logs[1]?.logIndex,
      blockNumber: first.blockNumber,
      blockHash: first.blockHash,
      from: stranded.payment.payer.toLowerCase(),
      value: 7n,
      payment: { nonceSpace: deployment.usdc, nonce: stranded.payment.nonce.toLowerCase() },
    },
    expect.objectContaining({
      transactionHash: byMistake.transactionHash,
      from: `0x${"0".repeat(40)}`,
      value: 9n,
      payment: undefined,
    }),
  ]);
  // The logs, the receipts of the three transactions that settled less than they brought, and the call of the one without an
  // authorization.
  expect(proxy.batches.map((batch) => batch.map(({ method }) => method))).toEqual([
    ["eth_getBlockByNumber", "eth_getLogs", "eth_getLogs"],
    ["eth_getTransactionReceipt", "eth_getTransactionReceipt", "eth_getTransactionReceipt"],
    ["eth_getTransactionByHash"],
  ]);
});

test("each place is the one that the search for its authorization gives", async () => {
  const call = await deployment.pay();
  await deployment.submitDirectly(call);
  const [stranded] = await list();
  const found = await findDirectSubmission(chain, {
    ...call,
    fromBlock: startBlock(),
    toBlock: (await deployment.newestBlock()).number,
  });
  expect(stranded).toMatchObject({ ...Object(found) });
});

test("two of one value by one payer in one transaction are two", async () => {
  const calls = [
    await deployment.pay({ payer: "alice", funds: 20_000n }),
    await deployment.pay({ payer: "alice" }),
  ];
  await deployment.sendTogether(
    calls.map((call) => ({ to: deployment.usdc, data: deployment.encodeDirectSubmission(call) })),
  );
  expect((await list()).map(({ payment }) => payment?.nonce)).toEqual(
    calls.map(({ payment }) => payment.nonce),
  );
});

test("where nothing is stranded, no receipt is read", async () => {
  await settle([await deployment.pay(), await deployment.pay()]);
  expect(await list()).toEqual([]);
  expect(proxy.batches).toHaveLength(1);
});

describe("nothing is listed", () => {
  beforeEach(async () => {
    await deployment.submitDirectly(await deployment.pay());
  });

  test.each<[string, unknown]>([
    ["is missing", null],
    ["is something else", {}],
  ])("when a receipt %s", async (_, receipt) => {
    proxy.behave(altering(well, "eth_getTransactionReceipt", () => receipt));
    await expect(list()).rejects.toThrow(UndeterminedError);
  });

  test("when a receipt is of another block", async () => {
    const blockHash = `0x${"12".repeat(32)}`;
    proxy.behave(
      altering(well, "eth_getTransactionReceipt", (receipt) => ({ ...Object(receipt), blockHash })),
    );
    await expect(list()).rejects.toThrow(UndeterminedError);
  });
});
