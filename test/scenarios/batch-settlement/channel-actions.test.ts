import { computeChannelId } from "@x402/evm/batch-settlement/client";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import {
  channelRequirements,
  connectFacilitator,
  createChannelBuyer,
  readChannelState,
  signChannelPayment,
  startChannelShop,
} from "../../support/channels.ts";
import { runningChain } from "../../support/running-chain.ts";
import { addRival, type Body, balanceOf, post, startTestHarness } from "../../support/service.ts";

/* What shops do with their channels by this facilitator: claim, settle, refund. */

let harness: RunningHarness;
let chain: HarnessChain;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any" });
  chain = runningChain(harness, "base");
});
afterAll(() => harness?.close());

const newAccount = () => privateKeyToAccount(generatePrivateKey()).address;
const reason = (name: string) => `invalid_batch_settlement_evm_${name}`;
const network = "eip155:8453";

/** A shop, and a buyer who has bought there three times. */
async function openShop(options: Parameters<typeof startChannelShop>[2] = {}) {
  const { facilitator, exchanges } = connectFacilitator(harness.description.facilitator.url);
  const shop = await startChannelShop(chain, facilitator, options);
  onTestFinished(() => shop.close());
  const buyer = await createChannelBuyer(chain, options.method);
  for (let purchase = 1; purchase <= 3; purchase++) {
    expect(await buyer.buy(shop.url)).toMatchObject({ status: 200 });
  }
  const [channel] = await shop.scheme.getStorage().list();
  if (channel === undefined) throw new Error("the shop has no channel");
  const id = computeChannelId(channel.channelConfig, network);
  return { ...shop, buyer, exchanges, channel, id };
}

/** How many transactions the operator has sent. */
const sent = async () =>
  Number(await chain.node.request("eth_getTransactionCount", harnessAccounts.operator.address, "latest"));

const cases = [
  { method: "eip3009", ownKey: false },
  { method: "eip3009", ownKey: true },
  { method: "permit2", ownKey: false },
] as const;

describe.each(cases)("deposits by $method, with a key of the shop's own: $ownKey", (options) => {
  test("claim, settle and refund after three purchases; repeats send nothing", async () => {
    const { manager, receiver, buyer, exchanges, id } = await openShop(options);
    expect(await manager.claim()).toMatchObject([{ vouchers: 1 }]);
    expect(await readChannelState(chain, id)).toEqual([10_000n, 3_000n]);
    await manager.settle();
    expect(await balanceOf(harness, receiver)).toBe(3_000n);
    expect(await manager.refund()).toHaveLength(1);
    expect(await readChannelState(chain, id)).toEqual([3_000n, 3_000n]);
    expect(await balanceOf(harness, buyer.account.address)).toBe(47_000n);
    const [claimed, settled, refunded] = exchanges.slice(2).map(({ answer }) => answer as Body);
    expect(claimed).toMatchObject({ success: true, transaction: expect.stringMatching(/^0x/) });
    expect(settled).toMatchObject({ success: true, amount: "3000" });
    expect(refunded).toMatchObject({
      ...{ success: true, amount: "7000" },
      extra: { channelState: { channelId: id, balance: "3000", totalClaimed: "3000", refundNonce: "1" } },
    });
    const before = await sent();
    const answers = [];
    for (const { body } of exchanges.slice(2)) answers.push((await post(harness, "settle", body)).body);
    expect(answers.map(({ errorReason }) => errorReason)).toEqual(
      ["cumulative_below_claimed", "nothing_to_settle", "refund_no_balance"].map(reason),
    );
    expect(await sent()).toBe(before);
  });
});
