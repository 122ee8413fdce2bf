import { createWalletClient, http } from "viem";
import { expect, onTestFinished, test } from "vitest";
import { mockBatchSettlementAbi } from "../../../src/contracts/mockBatchSettlement.ts";
import { batchSettlementAddress } from "../../../src/methods/batch-settlement/contracts.ts";
import { channels, type Message } from "../../../src/observe/channels/channels.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { channelRequirements, createChannelBuyer, signChannelPayment } from "../../support/channels.ts";
import { runHere } from "../../support/run-here.ts";
import { useComposition } from "../../support/use-composition.ts";

/* A payer who takes back what is in a channel is seen, whichever instance looks, and whoever was away when it was announced. */

const composition = useComposition();

test("a withdrawal from a channel that was opened here is reported, and shown", async () => {
  const { chain } = composition;
  const seen: Message<"withdrawal">[] = [];
  onTestFinished(channels.withdrawal.subscribe((message) => seen.push(message)));
  const log: string[] = [];
  const running = await composition.start({ log });
  const { address: receiver } = harnessAccounts.recipient;
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const terms = channelRequirements(chain, { receiver, receiverAuthorizer });
  const buyer = await createChannelBuyer(chain);
  const deposit = await signChannelPayment(buyer, terms);
  expect((await composition.post(running, "settle", deposit)).body).toMatchObject({ success: true });
  const { channelConfig, voucher } = deposit.paymentPayload.payload;

  await chain.setBalance(buyer.account.address, 10n ** 18n);
  const wallet = createWalletClient({ account: buyer.account, transport: http(chain.rpcUrl) });
  await wallet.writeContract({
    ...{ address: batchSettlementAddress, abi: mockBatchSettlementAbi, functionName: "initiateWithdraw" },
    ...{ args: [channelConfig, 4_000n], chain: null },
  });
  await chain.mine();
  await expect.poll(() => seen.length, { timeout: 20_000 }).toBe(1);
  const now = await chain.now();
  expect(seen).toMatchObject([
    {
      network: "base",
      channel: voucher.channelId,
      payer: buyer.account.address.toLowerCase(),
      amount: 4_000n,
    },
  ]);
  expect(Number(now) + 900 - (seen[0]?.endsAt ?? 0)).toBeLessThan(60);
  expect(log.filter((line) => line.includes("withdraws from a channel"))).toHaveLength(1);
  const url = { DATABASE_URL: composition.databaseUrl() };
  const shown = await runHere(["channels", "show", "--id", voucher.channelId, "--json"], url);
  expect(JSON.parse(shown.stdout)).toMatchObject({
    ...{ id: voucher.channelId, deposited: "10000", claimed: "0", withdrawal: "4000" },
    withdrawableAt: new Date((seen[0]?.endsAt ?? 0) * 1_000).toISOString(),
  });
  const listed = await runHere(["channels", "list"], url);
  expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining(voucher.channelId)]);
});
