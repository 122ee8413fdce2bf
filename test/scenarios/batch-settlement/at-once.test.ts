import { expect, test } from "vitest";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import {
  channelAction,
  channelRequirements,
  claimRow,
  createChannelBuyer,
  readChannelState,
  signChannelPayment,
} from "../../support/channels.ts";
import type { Running } from "../../support/composition.ts";
import { runHere } from "../../support/run-here.ts";
import type { Body } from "../../support/service.ts";
import { useComposition } from "../../support/use-composition.ts";

/* Instances that are asked about one channel at the same time. */

const composition = useComposition();

test("two claims, of which one goes further, count once", { timeout: 30_000 }, async () => {
  const { chain } = composition;
  const instances = [await composition.start(), await composition.start()] as const;
  const { address: receiver } = harnessAccounts.recipient;
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const terms = channelRequirements(chain, { receiver, receiverAuthorizer });
  const deposit = await signChannelPayment(await createChannelBuyer(chain), terms);
  const settle = async (running: Running, body: Body) =>
    (await composition.post(running, "settle", body)).body;
  expect(await settle(instances[0], deposit)).toMatchObject({ success: true });
  const claimOf = (total: string) =>
    channelAction(chain, receiver, { type: "claim", claims: [claimRow(deposit, total)] });

  const release = await composition.holdMining();
  composition.proxy.take();
  const first = settle(instances[0], claimOf("500"));
  await composition.untilSent();
  const second = settle(instances[1], claimOf("700"));
  await composition.untilSent();
  await release();
  for (const answer of await Promise.all([first, second])) expect(answer).toMatchObject({ success: true });
  const { channelId: id } = deposit.paymentPayload.payload.voucher;
  expect(await readChannelState(chain, id)).toEqual([10_000n, 700n]);
  const url = { DATABASE_URL: composition.databaseUrl() };
  const { stdout } = await runHere(["channels", "show", "--id", id, "--json"], url);
  expect(JSON.parse(stdout)).toMatchObject({ deposited: "10000", claimed: "700", refunded: "0" });
});
