import { describe, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { createPayerSigner } from "../../../src/payer/sign-as.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { walletInitCode } from "../../../src/payer/undeployed-wallet.ts";
import { create2Address, create2Deployer } from "../../../src/protocol/create2.ts";
import { type Address, type Hex, keccak256Text } from "../../../src/protocol/hex.ts";
import { wrapErc6492 } from "../../../src/protocol/signed-payment.ts";
import type { JsonResponse } from "../../../src/util/http-client.ts";
import type { Running } from "../../support/composition.ts";
import { value } from "../../support/recovery-scene.ts";
import type { Body } from "../../support/service.ts";
import { settleAfterDeath } from "../../support/service-process.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/* Payers whose smart wallets are deployed with their first payment (ERC-6492). */

const scene = useRecoveryScene();

const answerOf = ({ body }: JsonResponse) => body as Record<string, unknown>;
const settle = async (running: Running, body: Body) => answerOf(await scene.post(running, "settle", body));
const verify = async (running: Running, body: Body) => answerOf(await scene.post(running, "verify", body));
const paid = () => scene.balanceOf(scene.recipient());
const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/);
const notDeployed = "invalid_exact_evm_payload_undeployed_smart_wallet";
const codeAt = (account: Address) =>
  createLocalRpc(scene.chain.rpcUrl).request("eth_getCode", account, "latest");

type Wallet = { address: Address; factory: Address; factoryCalldata: Hex };
const { privateKey, owner } = testPayers.undeployedWallet;
let wallets = 0;

/** A wallet of the published owner that nobody has deployed, with money. */
async function newWallet(): Promise<Wallet> {
  const salt = keccak256Text(`wallet ${++wallets} ${Date.now()}`);
  const initCode = walletInitCode(owner);
  const address = create2Address(salt, initCode);
  await scene.chain.fund(address, 10n * value);
  return { address, factory: create2Deployer, factoryCalldata: `${salt}${initCode.slice(2)}` };
}

async function sign(
  wallet: Wallet,
  { key = privateKey, payTo }: { key?: Hex; payTo?: Address } = {},
): Promise<Body> {
  const payer = { address: wallet.address, signer: createPayerSigner(key) };
  const body = await scene.sign(payer, {}, payTo);
  const { payload } = body.paymentPayload;
  payload.signature = wrapErc6492(wallet.factory, wallet.factoryCalldata, payload.signature);
  return body;
}

describe.each(["through the contract", "straight to the merchant"] as const)(
  "a first payment %s",
  (route) => {
    const terms = () => (route === "straight to the merchant" ? { payTo: scene.recipient() } : {});

    test("deploys the wallet, and the next one needs not to", async () => {
      const running = await scene.startService();
      const wallet = await newWallet();
      const body = await sign(wallet, terms());
      expect(await verify(running, body)).toMatchObject({ isValid: true });
      expect(await codeAt(wallet.address)).toBe("0x");
      const { success, transaction } = await settle(running, body);
      expect({ success, transaction }).toEqual({ success: true, transaction: hash });
      expect(await codeAt(wallet.address)).not.toBe("0x");
      expect(await settle(running, body)).toMatchObject({ success: false, situation: "settled_before" });
      // Clients may not know of it yet, and wrap the signature all the same.
      const next = await sign(wallet, terms());
      expect(await verify(running, next)).toMatchObject({ isValid: true });
      expect(await settle(running, next)).toMatchObject({ success: true });
      expect(await paid()).toBe(2n * value);
    });

    test("whose signature is another's deploys nothing", async () => {
      const running = await scene.startService();
      const wallet = await newWallet();
      const body = await sign(wallet, { ...terms(), key: testPayers.funded.privateKey });
      expect(await verify(running, body)).toMatchObject({
        isValid: false,
        situation: "token_refuses_signature",
      });
      expect(await settle(running, body)).toMatchObject({ success: false });
      expect(await codeAt(wallet.address)).toBe("0x");
      expect(await paid()).toBe(0n);
    });

    test("is paid once where somebody deploys the wallet first", async () => {
      const running = await scene.startService({ settleWaitMs: 20_000 });
      const wallet = await newWallet();
      const body = await sign(wallet, terms());
      const release = await scene.holdMining();
      const { answer } = await scene.settleInPool(running, body);
      await scene.sendAhead({ from: scene.stranger(), to: wallet.factory, data: wallet.factoryCalldata });
      await release();
      expect(answerOf(await answer)).toMatchObject({ success: true });
      expect(await paid()).toBe(value);
    });
  },
);

test("wallets of other factories are refused by the name of the factory", async () => {
  const running = await scene.startService({ network: { walletFactories: [] } });
  const body = await sign(await newWallet());
  expect(await verify(running, body)).toMatchObject({
    ...{ isValid: false, invalidReason: notDeployed },
    invalidMessage: expect.stringContaining(`calls no factory ${create2Deployer.toLowerCase()}`),
  });
});

test("a factory that deploys something else is told so", async () => {
  const running = await scene.startService();
  const wallet = await newWallet();
  const other = await newWallet();
  const body = await sign({ ...wallet, factoryCalldata: other.factoryCalldata });
  expect(await verify(running, body)).toMatchObject({
    ...{ isValid: false, invalidReason: notDeployed },
    invalidMessage: expect.stringContaining("does not deploy it"),
  });
});

test.each(["through the contract", "straight to the merchant"])(
  "a pause of the contract is no fault of the payment, %s",
  async (route) => {
    const running = await scene.startService({ settleWaitMs: 1_000 });
    const body = await sign(
      await newWallet(),
      route === "straight to the merchant" ? { payTo: scene.recipient() } : {},
    );
    await scene.mine(scene.ofPauser("pause"));
    try {
      expect(await scene.post(running, "verify", body)).toMatchObject({ status: 503 });
      expect(await scene.post(running, "settle", body)).toMatchObject({ status: 503 });
    } finally {
      await scene.mine(scene.ofPauser("unpause"));
    }
    expect(await scene.settleUntilDecided(running, body)).toBe(true);
  },
);

test("an organization that takes plain accounts only takes no wallet that is to come", async () => {
  const running = await scene.startService();
  await running.service.organizations.setLimits("org", "base", { refusePayersWithCode: true });
  const body = await sign(await newWallet());
  expect(await verify(running, body)).toMatchObject({ isValid: false, situation: "payer_has_code" });
  expect(await settle(running, body)).toMatchObject({ success: false, situation: "payer_has_code" });
});

test("several wallets at once are deployed each by its own transaction", async () => {
  const running = await scene.startService({ settleWaitMs: 20_000 });
  const bodies = [];
  for (let index = 0; index < 4; index++) bodies.push(await sign(await newWallet()));
  const answers = await Promise.all(bodies.map((body) => settle(running, body)));
  expect(answers).toMatchObject(bodies.map(() => ({ success: true })));
  expect(new Set(answers.map(({ transaction }) => transaction)).size).toBe(4);
  expect(await paid()).toBe(4n * value);
});

test("the next process deploys the wallet of a payment that the last one had claimed", async () => {
  const body = await sign(await newWallet());
  const { answer, received } = await settleAfterDeath(scene, body, { dieAt: "claimed, not broadcast" });
  expect(answer).toMatchObject({ success: true, transaction: hash });
  expect(received).toBe(value);
});
