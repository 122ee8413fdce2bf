import { Migrator } from "kysely/migration";
import { beforeEach, describe, expect, test } from "vitest";
import { completeFormerBytecode, deployContract } from "../../../test/support/former-contract.ts";
import { signAs } from "../../../test/support/sign-as.ts";
import { useComposition } from "../../../test/support/use-composition.ts";
import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import { x402FacilitatorBytecode } from "../../contracts/x402Facilitator.ts";
import { initial } from "../../ledger/database/migrations/initial-migration.ts";
import { migrations } from "../../ledger/database/migrations/later-migrations.ts";
import { openDatabase } from "../../ledger/database/open-database.ts";
import {
  buildPaymentRequest,
  exactEip3009Method,
  paymentOf,
} from "../../methods/exact-eip3009/eip3009-method.ts";
import { encodeSettle } from "../../methods/exact-eip3009/on-chain/eip3009-transaction.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import { ConfigurationError } from "../../util/errors.ts";

/*
 * Payments that were signed for a facilitator contract that is not the offered one any more.
 */

const composition = useComposition();
beforeEach(() => composition.chain.reset());

const request = (method: string, ...params: unknown[]) => composition.chain.node.request(method, ...params);
const operator = createLocalSigner(harnessAccounts.operator.privateKey);

async function sign(contract: Address) {
  const { network, asset } = composition.chain;
  const signed = await signAs("funded", {
    ...{ asset, chainId: network.chainId, to: contract, value: 10_000n },
    validBefore: (await composition.chain.now()) + 600n,
  });
  const body = buildPaymentRequest({
    ...{ x402Version: 1, network, asset, payTo: contract, amount: 10_000n },
    resource: "https://merchant.example/resource",
    ...signed,
  });
  return { ...signed, body };
}

describe("a payment for a former contract", () => {
  test("that is in the list is settled through it, as a new one; one that is not in the list is refused", async () => {
    const former = await deployContract(composition.chain);
    const before = await composition.recipientBalance();
    const { body } = await sign(former);
    const without = await composition.start();
    expect((await composition.post(without, "verify", body)).body).toMatchObject({ isValid: false });
    await composition.stop(without);
    const running = await composition.start({
      network: composition.configuration({ formerContracts: [former] }),
    });
    expect((await composition.post(running, "verify", body)).body).toMatchObject({ isValid: true });
    expect((await composition.post(running, "settle", body)).body).toMatchObject({ success: true });
    const offered = await composition.post(running, "settle", await composition.payment());
    expect(offered.body).toMatchObject({ success: true });
    expect(await composition.recipientBalance()).toBe(before + 20_000n);
  });

  test("which lacks what this version needs: it cannot be the offered one, and another address in its place is a warning", async () => {
    const former = await deployContract(composition.chain);
    const offered = composition.configuration({ facilitatorContract: former });
    await expect(composition.start({ network: offered })).rejects.toThrow(ConfigurationError);
    const log: string[] = [];
    const network = composition.configuration({ formerContracts: [former, harnessAccounts.admin.address] });
    await composition.start({ network, log });
    const warnings = log.filter((line) => line.includes('"level":40'));
    expect(warnings).toEqual([expect.stringContaining(harnessAccounts.admin.address)]);
  });

  test("which has every function of this version may still be the offered one", async () => {
    const former = await deployContract(composition.chain, completeFormerBytecode);
    const offered = composition.configuration({ facilitatorContract: former });
    const log: string[] = [];
    const running = await composition.start({ network: offered, log });
    const { body } = await sign(former);
    expect((await composition.post(running, "settle", body)).body).toMatchObject({ success: true });
    expect(log.filter((line) => line.includes('"level":40'))).toEqual([]);
  });

  test("that is under way when another contract is configured settles, also where it has to be replaced", async () => {
    const { chain } = composition;
    const next = await deployContract(chain, x402FacilitatorBytecode);
    const before = await composition.recipientBalance();
    const transactions = await composition.operatorTransactions();
    const release = await composition.holdMining();
    const first = await composition.start({ settleWaitMs: 100 });
    const body = await composition.payment();
    composition.proxy.take();
    const pending = composition.post(first, "settle", body);
    await composition.untilSent();
    await pending;
    await composition.stop(first);
    // What was offered is too little now: only a replacement is mined.
    await request("anvil_setNextBlockBaseFeePerGas", "0x2540be400");
    await request("evm_mine");
    const network = composition.configuration({
      facilitatorContract: next,
      formerContracts: [chain.facilitatorContract],
      blockTimeMs: 50,
    });
    const second = await composition.start({ network });
    await release();
    let isOver = false;
    const mining = (async () => {
      while (!isOver) await request("evm_mine").then(() => new Promise((done) => setTimeout(done, 100)));
    })();
    await expect
      .poll(() => composition.post(second, "settle", body))
      .toMatchObject({ body: { success: true } });
    isOver = true;
    await mining;
    expect(await composition.recipientBalance()).toBe(before + 10_000n);
    expect(await composition.operatorTransactions()).toBe(transactions + 1);
  });
});

/** The migrations of the version whose database and contract the payments below are under way with. */
const formerMigrations = migrations.slice(0, 6);

describe("the database and the contract of a former version, with payments under way", () => {
  test.each([
    { where: "mined already", sends: true, holds: false },
    { where: "in the pool", sends: true, holds: true },
    { where: "nowhere yet", sends: false, holds: false },
  ])("$where: each is settled once, and none is stuck", async ({ sends, holds }) => {
    const { chain } = composition;
    const former = await deployContract(chain);
    const before = await composition.recipientBalance();
    const first = await composition.operatorTransactions();
    const payments = await Promise.all([sign(former), sign(former), sign(former)]);
    const release = holds ? await composition.holdMining() : undefined;

    const db = await openDatabase({ url: composition.databaseUrl() });
    const provider = {
      getMigrations: async () => Object.fromEntries(formerMigrations.map((one) => [one.name, one])),
    };
    expect(formerMigrations[0]).toBe(initial);
    expect((await new Migrator({ db, provider }).migrateToLatest()).error).toBeUndefined();
    const insert = (table: string, row: Record<string, string | number | null>) =>
      db.$extendTables<Record<string, typeof row>>().insertInto(table).values(row).execute();
    const now = Date.now();
    const { chainId, name } = chain.network;
    const recipient = harnessAccounts.recipient.address;
    await insert("organizations", { id: "org", name: "Org", created_at: now });
    await insert("recipients", { organization_id: "org", network: name, recipient });
    const account = operator.address.toLowerCase();
    await insert("operator_nonces", { chain_id: chainId, operator: account, next_tx_nonce: first + 3 });
    const head = (await request("eth_getBlockByNumber", "latest", false)) as { number: Hex };
    const ids: Hex[] = [];
    for (const [index, { authorization, signature }] of payments.entries()) {
      const payment = paymentOf(chain.asset.address, { authorization, signature });
      const txNonce = first + index;
      const signed = await operator.signTransaction({
        ...{ chainId, nonce: txNonce, to: former, gas: 500_000n },
        data: encodeSettle({ payment, recipient }),
        ...{ maxFeePerGas: 5_000_000_000n, maxPriorityFeePerGas: 1_000_000n },
      });
      const { asset, payer, nonce, limit, window } = payment;
      const id = settlementId(chainId, asset, payer, nonce);
      ids.push(id);
      await insert("settlements", {
        ...{ id, organization_id: "org", network: name, chain_id: chainId, asset: asset.toLowerCase() },
        ...{ payer: payer.toLowerCase(), authorization_nonce: nonce },
        digest: exactEip3009Method.digester(chain.asset, chainId)(payment),
        ...{ value: `${limit}`, valid_after: `${window.first - 1n}`, valid_before: `${window.last + 1n}` },
        ...{ signature, recipient: recipient.toLowerCase(), state: "submitted", operator: account },
        ...{ tx_nonce: txNonce, transaction_hash: signed.hash, block_number: null, block_hash: null },
        ...{ failure: null, claimed_block: Number(head.number), used_by_block: null, next_look_at: 0 },
        ...{ claimed_at: now, concluded_at: null, delivered_at: null },
      });
      await insert("attempts", {
        ...{ hash: signed.hash, chain_id: chainId, operator: account, tx_nonce: txNonce, kind: "settle" },
        ...{ raw: signed.raw, max_fee_per_gas: "5000000000", max_priority_fee_per_gas: "1000000" },
        ...{ state: "open", created_at: now },
      });
      if (sends) await request("eth_sendRawTransaction", signed.raw);
    }
    await db.destroy();

    const log: string[] = [];
    // Not in the list: a payment that is claimed is judged by its claim alone.
    const running = await composition.start({ log });
    await release?.();
    const stateOf = async (id: Hex) => {
      const response = await fetch(`${running.url}/settlements/${id}`, {
        headers: { authorization: running.key },
      });
      return ((await response.json()) as { state: string }).state;
    };
    await expect
      .poll(() => Promise.all(ids.map(stateOf)), { timeout: 15_000 })
      .toEqual(ids.map(() => "settled"));
    expect(await composition.recipientBalance()).toBe(before + 30_000n);
    expect(await composition.operatorTransactions()).toBe(first + 3);
    expect(log.filter((line) => line.includes('"level":50'))).toEqual([]);
    // Their callers have no answer yet: each gets its success once, and none is refused before.
    for (const { body } of payments) {
      const repeats = [];
      for (let count = 0; count < 3; count++) repeats.push(await composition.post(running, "settle", body));
      const isSuccess = repeats.map((repeat) => Reflect.get(Object(repeat.body), "success"));
      expect(isSuccess).toEqual([true, false, false]);
    }
    expect(await composition.recipientBalance()).toBe(before + 30_000n);
    const next = await composition.post(running, "settle", await composition.payment());
    expect(next.body).toMatchObject({ success: true });
  });
});
