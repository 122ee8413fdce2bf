import { afterAll, beforeAll, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { type Address, addressWord } from "../../../src/protocol/hex.ts";
import { harnessAccounts } from "../../../src/published/accounts.ts";
import { testPayers } from "../../../src/published/test-payers.ts";
import { accountOf } from "../../support/key-accounts.ts";

/* Fresh accounts that share a delegate (EIP-7702) which accepts every simulation and reverts when it is mined. */

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"], settleWaitMs: 3_000 });
});
afterAll(() => harness?.close());

/** Delegates an account to the code of the test payer `fickle`, with the account itself as the owner. */
async function delegate(account: Address): Promise<void> {
  const { client, fund } = harness.networks.base;
  await client.setCode({
    address: account,
    bytecode: `0xef0100${testPayers.fickle.address.slice(2)}`,
  });
  await client.setStorageAt({ address: account, index: 0, value: `0x${addressWord(account)}` });
  await fund(account, 1_000_000n);
}

test("a hundred of them cost the operator eight transactions, and keep no plain account from paying", async () => {
  const { client } = harness.networks.base;
  const wallets = Array.from({ length: 100 }, (_, index) => accountOf(`fickle wallet ${index}`));
  await Promise.all(wallets.map(({ address }) => delegate(address)));
  const sent = () => client.getTransactionCount({ address: harnessAccounts.operator.address });
  const before = await sent();

  const bodies = await Promise.all(wallets.map((payer) => harness.sign({ network: "base", payer })));
  const plain = await Promise.all(Array.from({ length: 20 }, () => harness.sign({ network: "base" })));
  expect(await harness.verify(bodies[0] ?? plain[0] ?? {})).toMatchObject({ body: { isValid: true } });
  const attack = Promise.all(bodies.map((body) => harness.settle(body)));
  for (const { body } of await Promise.all(plain.map((body) => harness.settle(body)))) {
    expect(body).toMatchObject({ success: true });
  }
  const ends = (await attack).map(({ status }) => status);
  const reverted = ends.filter((status) => status === 200).length;
  // Eight at once, and after them one or two, since each waits longer.
  expect(reverted).toBeGreaterThanOrEqual(1);
  expect(reverted).toBeLessThanOrEqual(10);
  expect(ends.filter((status) => status === 503)).toHaveLength(100 - reverted);
  expect((await sent()) - before).toBeLessThanOrEqual(20 + 2 * reverted);
});
