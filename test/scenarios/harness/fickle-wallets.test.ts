import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { type Address, addressWord } from "../../../src/protocol/hex.ts";
import { accountOf } from "../../support/key-accounts.ts";

/* Fresh accounts that share a delegate (EIP-7702) which accepts every simulation and reverts when it is mined. */

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"], settleWaitMs: 3_000 });
});
afterAll(() => harness?.close());

type Answer = Awaited<ReturnType<Harness["settle"]>>;

/** Settles as an honest client does: again, until the payment is decided. */
async function settleToEnd(body: Parameters<Harness["settle"]>[0]): Promise<Answer> {
  for (;;) {
    const answer = await harness.settle(body);
    if (answer.status !== 503) return answer;
  }
}

/** Delegates an account to a code, by default that of the test payer `fickle`, with the account itself as the owner. */
async function delegate(
  account: Address,
  { client, fund }: Harness<"base">["networks"]["base"] = harness.networks.base,
  to: Address = testPayers.fickle.address,
): Promise<void> {
  await client.setCode({ address: account, bytecode: `0xef0100${to.slice(2)}` });
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
  for (const { body } of await Promise.all(plain.map(settleToEnd))) {
    expect(body).toMatchObject({ success: true });
  }
  const ends = (await attack).map(({ status }) => status);
  const reverted = ends.filter((status) => status === 200).length;
  // Eight at once, and after them one or two, since each waits longer. Not all are answered in time on a busy machine.
  expect(reverted).toBeLessThanOrEqual(10);
  expect(ends.filter((status) => status === 503)).toHaveLength(100 - reverted);
  expect((await sent()) - before).toBeLessThanOrEqual(20 + 2 * 10);
  const repeat = async () =>
    (await Promise.all(bodies.map((body) => harness.settle(body)))).map(({ status }) => status);
  await expect.poll(repeat).toContain(200);
});

test("fourteen of them keep nobody with that code from paying at other organizations, nor who has paid before", async () => {
  const recipient = harnessAccounts.recipient.address;
  await using own = await createHarness({
    networks: ["base"],
    organizations: ["attacked", "other"].map((id) => ({ id, recipient })),
    settleWaitMs: 12_000,
  });
  const { base } = own.networks;
  // Accepts every signature in simulations, and for accounts with a mark at slot 1 in transactions as well.
  const delegateCode = "0x00000000000000000000000000000000000c0de1";
  const bytecode = "0x6001543a1517600c575f5ffd5b631626ba7e60e01b5f5260205ff3";
  await base.client.setCode({ address: delegateCode, bytecode });
  const bad = Array.from({ length: 14 }, (_, index) => accountOf(`bad wallet ${index}`));
  const honest = Array.from({ length: 5 }, (_, index) => accountOf(`honest wallet ${index}`));
  for (const { address } of [...bad, ...honest]) await delegate(address, base, delegateCode);
  for (const { address } of honest) {
    await base.client.setStorageAt({ address, index: 1, value: `0x${addressWord(address)}` });
  }
  const settleAt = async (id: "attacked" | "other", payer: (typeof honest)[number], amount = 10_000n) =>
    own.as(id).settle(await own.sign({ network: "base", payer, amount }));
  const [regular, ...others] = honest;
  if (regular === undefined) throw new Error("no honest wallet");
  expect(await settleAt("attacked", regular)).toMatchObject({ body: { success: true } });

  let isOver = false;
  let reverts = 0;
  const attack = bad.map(async (payer) => {
    while (!isOver) {
      if ((await settleAt("attacked", payer, 1n)).status === 200) reverts++;
      await sleep(200);
    }
  });
  await expect.poll(() => reverts, { timeout: 10_000 }).toBeGreaterThanOrEqual(8);
  for (const _ of [1, 2]) {
    const answers = await Promise.all([
      settleAt("attacked", regular),
      ...others.map((payer) => settleAt("other", payer)),
    ]);
    expect(answers).toMatchObject(honest.map(() => ({ status: 200, body: { success: true } })));
  }
  isOver = true;
  await Promise.all(attack);
  expect(reverts).toBeLessThanOrEqual(14);
});
