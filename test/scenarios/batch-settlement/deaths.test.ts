import { expect, test } from "vitest";
import { signPayment } from "../../../src/harness/control/pay.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testChannelDeaths } from "../../support/channel-deaths.ts";
import { settleAfterDeath } from "../../support/service-process.ts";
import { useComposition } from "../../support/use-composition.ts";

/* kill -9 between the claim of what is asked for on a channel and its answer; the release tests try every step. */

const composition = useComposition();

testChannelDeaths(composition, (isPostgres) =>
  isPostgres ? ["claimed, not broadcast"] : ["mined, not recorded"],
);

test("a wallet that is deployed with its deposit deposits once", { timeout: 60_000 }, async () => {
  const { asset, facilitatorContract, network, rpcUrl } = composition.chain;
  const { address: payTo } = harnessAccounts.recipient;
  const { chainId, caip2 } = network;
  const running = { chainId, caip2, rpcUrl, asset, facilitatorContract, payTo };
  const extra = { receiverAuthorizer: harnessAccounts.authorizer.address };
  const terms = { network: "base", scheme: "batch-settlement", payer: "undeployedWallet", payTo } as const;
  const { request, payment } = await signPayment(
    { networks: { base: { ...running, ...extra } } },
    { ...terms, amount: 1_000n },
  );
  const before = await composition.balanceOf(payment.payer);
  const { answer } = await settleAfterDeath(composition, request, { dieAt: "claimed, not broadcast" });
  expect(answer).toMatchObject({ success: true, amount: `${payment.limit}` });
  expect(before - (await composition.balanceOf(payment.payer))).toBe(payment.limit);
});
