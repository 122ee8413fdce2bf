import { expect, test } from "vitest";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { addressWord } from "../../../src/protocol/hex.ts";
import { value } from "../../support/recovery-scene.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * The contract forwards only what its payer signed. A contract wallet is asked when the value is forwarded, and may have
 * changed its answer since it paid.
 */

const scene = useRecoveryScene();

test("what a wallet does not stand by any more waits with the reason, until it does again", async () => {
  const { node } = scene.chain;
  const service = await scene.startService({ settleWaitMs: 1_000 });
  const body = await scene.sign("smartWallet");
  const wallet = body.paymentPayload.payload.authorization.from;
  const owner = await node.request("eth_getStorageAt", wallet, "0x0", "latest");
  const setOwner = (word: unknown) => node.request("anvil_setStorageAt", wallet, "0x0", word);
  const forwardsBefore = await scene.recovererTransactions();

  const release = await scene.holdMining();
  const { answer } = await scene.settleInPool(service, body);
  await scene.sendAhead(scene.submission(body));
  await node.request("evm_mine");
  await setOwner(`0x${addressWord(harnessAccounts.treasury.address)}`);
  await release();
  await answer;
  await expect
    .poll(async () => await scene.recoveryOf(body))
    .toMatchObject({
      state: "queued",
      problem: expect.stringContaining("the payer's wallet does not stand by its signature any more"),
    });
  expect(await scene.recovererTransactions()).toBe(forwardsBefore);

  await setOwner(owner);
  await scene.untilState(service, body, "recovered");
  expect(await scene.balanceOf(scene.recipient())).toBe(value);
});
