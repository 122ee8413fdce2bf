import { createWalletClient, http } from "viem";
import { expect, test } from "vitest";
import { mockBatchSettlementAbi } from "../../../src/contracts/mockBatchSettlement.ts";
import { batchSettlementAddress } from "../../../src/methods/batch-settlement/contracts.ts";
import type { ChannelView } from "../../../src/observe/studio/channel-views.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import {
  actionsOf,
  channelRequirements,
  createChannelBuyer,
  signChannelPayment,
} from "../../support/channels.ts";
import { runningChain } from "../../support/running-chain.ts";
import { post } from "../../support/service.ts";
import { soon, useStudio, useStudioPage } from "../../support/studio.ts";

/* Channels in the studio: what is in them, and a payer who takes that back. */

const studio = useStudio(async () => ({ payTo: "any" }));
const shown = useStudioPage(studio);

test("a channel has a card, and a withdrawal from it is news of its deposit", {
  timeout: 90_000,
}, async () => {
  const { harness } = studio;
  const chain = runningChain(harness, "base");
  const list = async () => (await studio.get<{ channels: ChannelView[] }>("/channels")).channels;
  expect(await list()).toEqual([]);
  const buyer = await createChannelBuyer(chain);
  const { address: receiver } = harnessAccounts.recipient;
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const deposit = await signChannelPayment(
    buyer,
    channelRequirements(chain, { receiver, receiverAuthorizer }),
  );
  expect((await post(harness, "settle", deposit)).body).toMatchObject({ success: true });
  const { channelConfig, voucher } = deposit.paymentPayload.payload;
  const id: string = voucher.channelId;
  const opened = { id, network: "base", balance: "10000", claimed: "0", signed: "1000", withdrawal: null };
  expect(await list()).toMatchObject([opened]);
  expect((await post(harness, "settle", actionsOf(chain, deposit).claim)).body).toMatchObject({
    success: true,
  });
  expect(await list()).toMatchObject([{ ...opened, claimed: "700", owed: "700" }]);

  const { page } = shown;
  await page.getByRole("link", { name: "Channels" }).click();
  const card = page.getByRole("region", { name: `Channel ${id}` });
  await expect.poll(() => card.textContent(), soon).toMatch(/Balance0.01 USDC.*Claimed0.0007 USDC/s);

  const events = new AbortController();
  const stream = await fetch(`${studio.origin}/events`, { signal: events.signal });
  await chain.setBalance(buyer.account.address, 10n ** 18n);
  const wallet = createWalletClient({ account: buyer.account, transport: http(chain.rpcUrl) });
  await wallet.writeContract({
    ...{ address: batchSettlementAddress, abi: mockBatchSettlementAbi, functionName: "initiateWithdraw" },
    ...{ args: [channelConfig, 4_000n], chain: null },
  });
  await chain.mine();
  let told = "";
  for await (const part of stream.body ?? []) {
    told += Buffer.from(part).toString();
    if (told.includes('"withdrawal":{"channel"')) break;
  }
  events.abort();
  expect(told).toContain(`"withdrawal":{"channel":"${id}","amount":"4000"`);
  const payments = await studio.list();
  const paid = payments.find(({ withdrawal }) => withdrawal !== null);
  expect((await studio.detailOf(paid?.id)).timeline.map(({ kind }) => kind)).toContain("withdrawal");
  expect(await list()).toMatchObject([{ withdrawal: { amount: "4000" } }]);
  await expect.poll(() => card.getByRole("alert").textContent(), soon).toMatch(/0.004 USDC in 1\d min/);
});
