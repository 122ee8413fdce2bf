import { expect, onTestFinished, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import {
  actionsOf,
  channelRequirements,
  createChannelBuyer,
  readChannelState,
  signChannelPayment,
} from "../../support/channels.ts";
import type { Body } from "../../support/service.ts";
import { useComposition } from "../../support/use-composition.ts";

/* Where blocks may vanish, the state in answers is of those that are deep enough. */

const composition = useComposition();

async function start(confirmations: number) {
  const network = composition.configuration({ confirmations });
  const running = await composition.start({ network, settleWaitMs: 20_000 });
  const mining = setInterval(() => void composition.chain.mine(), 200);
  onTestFinished(() => clearInterval(mining));
  const { address: receiver } = harnessAccounts.recipient;
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const buyer = await createChannelBuyer(composition.chain);
  const requirements = channelRequirements(composition.chain, { receiver, receiverAuthorizer });
  const deposit = await signChannelPayment(buyer, requirements);
  const { channelConfig, voucher } = deposit.paymentPayload.payload;
  const post = async (operation: "verify" | "settle", body: Body): Promise<Body> =>
    (await composition.post(running, operation, body)).body as Body;
  const verifyVoucher = () => {
    const payload = { type: "voucher", channelConfig, voucher };
    return post("verify", { ...deposit, paymentPayload: { ...deposit.paymentPayload, payload } });
  };
  const state = () => readChannelState(composition.chain, voucher.channelId as Hex);
  return { deposit, post, verifyVoucher, state };
}

test("a deposit counts once it is confirmed", async () => {
  const { deposit, post, verifyVoucher, state } = await start(4);
  const settling = post("settle", deposit);
  await expect.poll(state, { timeout: 10_000 }).toEqual([10_000n, 0n]);
  expect(await verifyVoucher()).toMatchObject({
    ...{ isValid: false, invalidReason: "invalid_batch_settlement_evm_channel_not_found" },
  });
  expect(await settling).toMatchObject({ success: true, extra: { channelState: { balance: "10000" } } });
  expect(await verifyVoucher()).toMatchObject({ isValid: true, extra: { balance: "10000" } });
});

const before = {
  deposit: [],
  claim: ["deposit"],
  settle: ["deposit", "claim"],
  refund: ["deposit"],
} as const;

test.each(["deposit", "claim", "settle", "refund"] as const)(
  "a %s whose block vanishes is made once, in another",
  async (kind) => {
    const { deposit, post, state } = await start(3);
    const actions = { deposit, ...actionsOf(composition.chain, deposit) };
    for (const one of before[kind]) {
      expect(await post("settle", actions[one])).toMatchObject({ success: true });
    }
    const sent = await composition.operatorTransactions();
    const received = await composition.recipientBalance();
    const settling = post("settle", actions[kind]);
    await expect.poll(composition.operatorTransactions, { timeout: 10_000 }).toBe(sent + 1);
    await createLocalRpc(composition.chain.rpcUrl).request("anvil_reorg", 1, []);
    expect(await settling).toMatchObject({ success: true });
    const states = {
      deposit: [10_000n, 0n],
      claim: [10_000n, 700n],
      settle: [10_000n, 700n],
      refund: [700n, 700n],
    };
    expect(await state()).toEqual(states[kind]);
    expect((await composition.recipientBalance()) > received).toBe(kind === "settle");
    expect(await post("settle", actions[kind])).toMatchObject({ success: false });
    expect(await composition.operatorTransactions()).toBe(sent + 1);
  },
);
