import { describe, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import { boundaries, giftBoundaries } from "../../support/crash/boundaries.ts";
import { value } from "../../support/recovery-scene.ts";
import { settleAfterDeath } from "../../support/service-process.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * Payments by Permit2 whose process dies at one step or another: the next one answers as the chain shows, and the payer is charged,
 * approves and is given gas money once. test/scenarios/crash/kill.test.ts tries each step with some way to pay.
 */

const scene = useRecoveryScene();
const success = { success: true, transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) };
const transactionsOf = async (account: Hex) =>
  Number(await createLocalRpc(scene.chain.rpcUrl).request("eth_getTransactionCount", account, "latest"));

describe.each(["claimed, not broadcast", "broadcast, not watched", "mined, not recorded"] as const)(
  "killed when %s",
  (dieAt) => {
    test("a payment of scheme exact", async () => {
      const { answer, received } = await settleAfterDeath(scene, await scene.signPermit("funded"), { dieAt });
      expect(answer).toMatchObject(success);
      expect(received).toBe(value);
    });

    test("a payment of scheme upto, of which a part is taken", async () => {
      const body = await scene.signPermit("funded", { max: 20_000n, amount: 1_000n });
      const { answer, received } = await settleAfterDeath(scene, body, { dieAt });
      expect(answer).toMatchObject({ ...success, amount: "1000" });
      expect(received).toBe(1_000n);
    });
  },
);

test("killed when claimed, not broadcast: an approval by signature that comes with the payment", async () => {
  const body = await scene.signPermit("unapproved", { approval: {} });
  const { answer, received } = await settleAfterDeath(scene, body, { dieAt: "claimed, not broadcast" });
  expect(answer).toMatchObject(success);
  expect(received).toBe(value);
});

test.each(boundaries.slice(0, 6))("killed when %s: an approval by a transaction", async (dieAt) => {
  const { address } = testPayers.sponsored;
  const sent = await transactionsOf(address);
  const body = await scene.signPermit("sponsored", { approvalTransaction: {} });
  const { answer, received } = await settleAfterDeath(scene, body, { dieAt });
  expect(answer).toMatchObject(success);
  expect(received).toBe(value);
  expect(await transactionsOf(address)).toBe(sent + 1);
});

test.each([...giftBoundaries, ...boundaries.slice(0, 5)])(
  "killed when %s: an approval of a payer without gas money",
  async (dieAt) => {
    const { address } = testPayers.unapproved;
    await scene.chain.setBalance(address, 0n);
    const gifts = () => transactionsOf(harnessAccounts.sponsor.address);
    const [given, sent] = [await gifts(), await transactionsOf(address)];
    const body = await scene.signPermit("unapproved", { approvalTransaction: {} });
    const { answer, received } = await settleAfterDeath(scene, body, { dieAt });
    expect(answer).toMatchObject(success);
    expect(received).toBe(value);
    expect(await gifts()).toBe(given + 1);
    expect(await transactionsOf(address)).toBe(sent + 1);
  },
);
