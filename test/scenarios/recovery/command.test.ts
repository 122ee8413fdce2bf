import { beforeAll, beforeEach, expect, test } from "vitest";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { value } from "../../support/recovery-scene.ts";
import { runHere } from "../../support/run-here.ts";
import type { Body } from "../../support/service.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * `x402-kit recover` and `x402-kit stranded`, beside a service that has no recoverer's key.
 */

const { address: recoverer } = accountOf("recoverer of its own");

const scene = useRecoveryScene();
beforeAll(async () => {
  await scene.mine(scene.ofAdmin("grantRole", "RECOVERER_ROLE", recoverer));
});
beforeEach(async () => {
  await scene.chain.setBalance(recoverer, 10n ** 18n);
});

/** Runs a command, and gives what it printed. */
async function run(command: string, env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await runHere(command.split(" "), {
    BASE_RPC_URL: scene.chain.rpcUrl,
    FACILITATOR_CONTRACT_MAINNET: scene.chain.facilitatorContract,
    CONFIRMATIONS: "base=1",
    DATABASE_URL: scene.databaseUrl(),
    ...env,
  });
  return { exitCode: code, printed: `${stdout}${stderr}`.trimEnd() };
}
const withKey = { RECOVERER_PRIVATE_KEY: keyOf("recoverer of its own") };

/** A payment that a third party submitted, queued by a service that cannot recover it. */
async function queueOne() {
  const service = await scene.startService({ recovers: false });
  const body = await scene.sign("funded");
  const release = await scene.holdMining();
  const { answer } = await scene.settleInPool(service, body);
  const submittedIn = await scene.sendAhead(scene.submission(body));
  await scene.chain.node.request("evm_mine");
  await release();
  expect((await answer).body).toMatchObject({ success: false });
  return { service, body, submittedIn };
}

const upperCase = (hash: string) => `0x${hash.slice(2).toUpperCase()}`;
const paymentOf = (body: Body) => ({
  network: "base",
  settlement: scene.idOf(body),
  organization: "org",
  recipient: scene.recipient(),
  value: value.toString(),
});

test("recover pays out what is queued, once, and a dry run only tells", async () => {
  const before = await scene.stranded();
  const { service, body, submittedIn } = await queueOne();

  // One endpoint's word moves no money: the command says what the operator has to look up, and how to go on.
  const unconfirmed = await run("recover --json", withKey);
  expect(unconfirmed.exitCode).toBe(1);
  expect(JSON.parse(unconfirmed.printed)).toMatchObject({
    payments: [
      {
        ...paymentOf(body),
        outcome: "waits",
        transaction: submittedIn,
        problem: expect.stringContaining(`recover --network base --confirmed ${submittedIn}`),
      },
    ],
  });
  expect(await scene.stranded()).toBe(before + value);
  const another = await run(`recover --confirmed 0x${"1a".repeat(32)}`, withKey);
  expect(another.exitCode).toBe(1);

  const dry = await run(`recover --dry-run --json --confirmed ${submittedIn}`);
  expect(dry.exitCode).toBe(0);
  expect(JSON.parse(dry.printed)).toMatchObject({
    dryRun: true,
    payments: [{ ...paymentOf(body), outcome: "would recover", transaction: submittedIn, problem: null }],
  });
  expect(await scene.stranded()).toBe(before + value);

  const done = await run(`recover --network base --json --confirmed ${upperCase(submittedIn)}`, withKey);
  const { transaction } = await scene.settlement(service, body);
  expect(JSON.parse(done.printed)).toMatchObject({
    payments: [{ ...paymentOf(body), outcome: "recovered", transaction }],
  });
  expect(done.exitCode).toBe(0);
  expect(await scene.balanceOf(scene.recipient())).toBe(value);
  expect(await scene.stranded()).toBe(before);

  expect(await run("recover", withKey)).toEqual({ exitCode: 0, printed: "Nothing to recover." });
  const answer = await scene.post(service, "settle", body);
  expect(answer.body).toMatchObject({ success: true, transaction });
});

test("recover says what it waits for, and pays when that is there", async () => {
  const { submittedIn } = await queueOne();
  const command = `recover --confirmed ${submittedIn}`;
  await scene.chain.setBalance(recoverer, 0n);
  const poor = await run(command, withKey);
  expect(poor.exitCode).toBe(1);
  expect(poor.printed).toContain("waits");
  expect(poor.printed).toContain(`The recoverer ${recoverer} has 0 wei`);
  expect(await scene.balanceOf(scene.recipient())).toBe(0n);

  await scene.chain.setBalance(recoverer, 10n ** 18n);
  expect((await run(command, withKey)).exitCode).toBe(0);
  expect(await scene.balanceOf(scene.recipient())).toBe(value);
});

test("recover needs a key, and refuses a published one", async () => {
  const { exitCode, printed } = await run("recover");
  expect(exitCode).toBe(2);
  expect(printed).toContain("RECOVERER_PRIVATE_KEY: is needed to recover; with --dry-run it is not");
  const published = { RECOVERER_PRIVATE_KEY: harnessAccounts.recoverer.privateKey };
  expect((await run("recover", published)).printed).toContain("is a published test key");
});

test("stranded lists what no organization has claimed, and says what is claimed", async () => {
  const before = await scene.stranded();
  const bait = await scene.sign("smartWallet");
  const strandedIn = await scene.mine(scene.submission(bait));
  const { body, submittedIn } = await queueOne();

  const { exitCode, printed } = await run("stranded --json");
  expect(exitCode).toBe(0);
  const [base] = JSON.parse(printed).assets;
  expect(base).toMatchObject({
    network: "base",
    balance: (before + 2n * value).toString(),
    recoverable: value.toString(),
  });
  expect(base.stranded.at(-1)).toMatchObject({
    value: value.toString(),
    from: bait.paymentPayload.payload.authorization.from.toLowerCase(),
    transaction: strandedIn,
    reason: "no organization claimed it",
  });
  expect(JSON.stringify(base.stranded)).not.toContain(
    body.paymentPayload.payload.authorization.from.toLowerCase(),
  );
  const told = (await run("stranded")).printed;
  expect(told).toContain("announceRescue");
  expect(told).toContain(
    `${value} of it are claimed: npx --no-install x402-kit recover. Do not rescue these.`,
  );

  await run(`recover --confirmed ${submittedIn}`, withKey);
  expect(JSON.parse((await run("stranded --json")).printed).assets[0]).toMatchObject({ recoverable: "0" });
});
