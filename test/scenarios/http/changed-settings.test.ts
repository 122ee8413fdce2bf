import { secp256k1 } from "@noble/curves/secp256k1";
import { sql } from "kysely";
import { beforeAll, describe, expect, test } from "vitest";
import type { NetworkConfig } from "../../../src/config/serve-config.ts";
import { strangerAddress } from "../../../src/fixtures/cases/payment-spec.ts";
import { planLocalDeployment } from "../../../src/harness/setup/addresses.ts";
import { exactEip3009Method } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { toBytes, toHex } from "../../../src/protocol/hex.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import type { Running } from "../../support/composition.ts";
import { parseBody } from "../../support/example-payment.ts";
import { openMigrated } from "../../support/open-migrated.ts";
import { placeContracts } from "../../support/place-contracts.ts";
import type { Body } from "../../support/service.ts";
import { useComposition } from "../../support/use-composition.ts";
import { firstWays, movingWays, signInWay, type Way, type WayPayment } from "../../support/ways.ts";

/*
 * Settings change while payments are under way, or paid and not handed over. Such a payment is what it was when it was claimed:
 * a refusal that has its client fix or sign again would have it pay twice.
 */

const composition = useComposition();

const straight = movingWays.filter((way) => way.straight);
const ofToken = movingWays.filter(({ method }) => method === "eip3009");
const ofPermit2 = movingWays.filter(({ method }) => method === "permit2");
const approved = firstWays.filter(({ approval }) => approval === true);
const walletsToCome = firstWays.filter(({ from }) => from === "new wallet");

type Change = {
  readonly name: string;
  readonly ways?: readonly Way[];
  readonly value?: bigint;
  /** By a configuration, with which the service is started again: before the payments, and after. */
  readonly before?: Partial<NetworkConfig>;
  readonly after?: () => Partial<NetworkConfig>;
  /** True if payments under way need the former configuration. */
  readonly stops?: true;
  /** Of the organization, while the service runs. */
  readonly act?: (running: Running) => Promise<void>;
};

const base = "base";
/** The same contract, deployed a second time. */
const otherContract = strangerAddress;
beforeAll(() => {
  const { initCode } = planLocalDeployment(composition.chain.network.tier);
  return placeContracts(composition.chain.node, [{ name: "another", address: otherContract, initCode }]);
});

const asset = () => composition.chain.asset;

const changes: readonly Change[] = [
  {
    name: "PAY_TO any becomes contract",
    ways: straight,
    before: { payTo: "any" },
    after: () => ({ payTo: "contract" }),
  },
  { name: "PAY_TO recipients becomes contract", ways: straight, after: () => ({ payTo: "contract" }) },
  { name: "the contract has another address", after: () => ({ facilitatorContract: otherContract }) },
  {
    name: "the contract has another address, where payments go anywhere",
    ...{ before: { payTo: "any" }, after: () => ({ payTo: "any", facilitatorContract: otherContract }) },
  },
  {
    name: "the network is not served any more",
    after: () => ({ ...networks.optimism, rpcUrls: ["http://127.0.0.1:9"] }),
    stops: true,
  },
  { name: "the token is not allowed any more", after: () => ({ assets: [] }) },
  {
    name: "EIP-3009 is not taken any more",
    ways: ofToken,
    after: () => ({ assets: [{ ...asset(), transfers: ["permit2"] }] }),
  },
  {
    name: "Permit2 is not taken any more",
    ways: ofPermit2,
    after: () => ({ assets: [{ ...asset(), transfers: ["eip3009"] }] }),
  },
  {
    ...{ name: "payments of nothing are not taken any more", value: 0n },
    ways: ofToken,
    ...{ before: { allowZeroValue: true }, after: () => ({ allowZeroValue: false }) },
  },
  { name: "payments must be valid for less long", after: () => ({ maxValiditySeconds: 7n }) },
  { name: "approvals are not submitted any more", ways: approved, after: () => ({ gasSponsoring: [] }) },
  { name: "wallets are not deployed any more", ways: walletsToCome, after: () => ({ walletFactories: [] }) },
  {
    name: "the minimum is raised",
    act: ({ service }) => service.organizations.setLimits("org", base, { minimumAmount: 1_000_000n }),
  },
  {
    ...{ name: "payers with code are refused", ways: walletsToCome },
    act: ({ service }) => service.organizations.setLimits("org", base, { refusePayersWithCode: true }),
  },
  {
    name: "the recipient is another",
    act: ({ service }) => service.organizations.setRecipient("org", base, harnessAccounts.admin.address),
  },
  {
    name: "the recipient is gone",
    async act() {
      const database = await openMigrated(composition.databaseUrl());
      await sql`delete from recipients`.execute(database);
      await database.destroy();
    },
  },
];

const pending = { situation: "pending", nextAction: "poll" };
const settledBefore = { situation: "settled_before", nextAction: "give_up" };

const verify = async (running: Running, { verifyBody }: WayPayment) =>
  (await composition.post(running, "verify", verifyBody)).body;
const settle = async (running: Running, { body }: WayPayment) =>
  (await composition.post(running, "settle", body)).body;

async function stateOf({ url, key }: Running, { id }: WayPayment): Promise<unknown> {
  const { body } = await requestJson(`${url}/settlements/${id}`, { headers: { authorization: key } });
  return body;
}

/** The same message of a wallet, with another signature of its owner. */
function signedAgain(body: Body): Body {
  const { chain } = composition;
  const digestOf = exactEip3009Method.digester(chain.asset, chain.network.chainId);
  const digest = toBytes(digestOf(parseBody(body).payment));
  const signature = secp256k1.sign(digest, toBytes(testPayers.smartWallet.privateKey), {
    lowS: true,
    extraEntropy: true,
  });
  const again = structuredClone(body);
  const v = signature.recovery === 0 ? "1b" : "1c";
  again.paymentPayload.payload.signature = `${toHex(signature.toCompactRawBytes())}${v}`;
  return again;
}

describe("a payment that was claimed is judged as it was", () => {
  test.each(changes)(
    "when $name",
    async ({ ways = movingWays, value = 10_000n, before, after, act, stops }) => {
      const { chain } = composition;
      const signEach = () =>
        Promise.all(ways.map((way) => signInWay(way, { chain, value, validForSeconds: 600 })));
      const start = (changed?: Partial<NetworkConfig>) =>
        composition.start({ network: composition.configuration(changed), settleWaitMs: 300 });
      let running = await start(before);
      const onEach = async (
        payments: readonly WayPayment[],
        does: (running: Running, payment: WayPayment) => Promise<unknown>,
        expected: object,
      ) => {
        const bodies = await Promise.all(payments.map((payment) => does(running, payment)));
        for (const body of bodies) expect(body).toMatchObject(expected);
      };

      const untilEach = (
        payments: readonly WayPayment[],
        does: (running: Running, payment: WayPayment) => Promise<unknown>,
        expected: object,
      ) =>
        Promise.all(
          payments.map((payment) => expect.poll(() => does(running, payment)).toMatchObject(expected)),
        );

      /** Has payments settled while nothing is mined, and does something before anything is. */
      const whileUnderWay = async (payments: readonly WayPayment[], act = async () => {}) => {
        const release = await composition.holdMining();
        try {
          // A busy service may have claimed none of them within its wait.
          await untilEach(payments, settle, pending);
          await act();
        } finally {
          await release();
        }
      };

      const delivered = await signEach();
      await untilEach(delivered, settle, { success: true });
      const undelivered = await signEach();
      await whileUnderWay(undelivered);
      await untilEach(undelivered, stateOf, { state: "settled", deliveredAt: null });
      const inFlight = await signEach();
      const changed = after?.();
      await whileUnderWay(inFlight, async () => {
        await act?.(running);
        if (changed !== undefined) {
          await composition.stop(running);
          running = await start(changed);
        }
        await onEach(inFlight, verify, { isValid: true });
        await onEach(inFlight, settle, pending);
      });
      await onEach(undelivered, verify, { isValid: true });
      await onEach(undelivered, settle, { success: true });
      await onEach([...undelivered, ...delivered], verify, settledBefore);
      await onEach([...undelivered, ...delivered], settle, settledBefore);
      if (stops === true) {
        await composition.stop(running);
        running = await start(before);
      }
      await untilEach(inFlight, settle, { success: true });
    },
  );

  test.each([
    { name: "served", changed: {}, expected: { status: 200, body: { success: true } } },
    {
      name: "not served",
      changed: { ...networks.optimism, rpcUrls: ["http://127.0.0.1:9"] as const },
      expected: { status: 503, body: { nextAction: "retry_same_payment" } },
    },
  ])(
    "also with another signature of a wallet over it, where its network is $name",
    async ({ changed, expected }) => {
      const first = await composition.start({ settleWaitMs: 300 });
      const body = await composition.payment("smartWallet");
      const release = await composition.holdMining();
      try {
        await expect
          .poll(async () => (await composition.post(first, "settle", body)).body)
          .toMatchObject(pending);
      } finally {
        await release();
      }
      await composition.stop(first);
      const second = await composition.start({ network: composition.configuration(changed) });
      await second.service.organizations.setLimits("org", base, { minimumAmount: 1_000_000n });
      expect(await composition.post(second, "settle", signedAgain(body))).toMatchObject(expected);
    },
  );

  test("but not with a signature that does not hold, nor for another amount", async () => {
    const running = await composition.start();
    const body = await composition.payment();
    expect((await composition.post(running, "settle", body)).body).toMatchObject({ success: true });
    await running.service.organizations.setLimits("org", base, { minimumAmount: 1_000_000n });
    const forged = structuredClone(body);
    forged.paymentPayload.payload.signature = `0x${"11".repeat(64)}1b`;
    expect((await composition.post(running, "settle", forged)).body).toMatchObject({
      situation: "amount_below_minimum",
    });
    const dearer = structuredClone(body);
    dearer.paymentRequirements.maxAmountRequired = "20000";
    const reason = "invalid_exact_evm_payload_authorization_value";
    expect((await composition.post(running, "verify", dearer)).body).toMatchObject({
      ...{ isValid: false, invalidReason: reason, situation: "settled_before" },
    });
  });
});
