import { describe, expect, test } from "vitest";
import type { PaymentOptions } from "../../../../test/support/deployment.ts";
import { accountOf } from "../../../../test/support/key-accounts.ts";
import { simulateSettle } from "../../../../test/support/simulate-settle.ts";
import { useProxiedDeployment } from "../../../../test/support/use-proxied-deployment.ts";
import { readCodes } from "../../../protocol/builder-code.ts";
import { uintWord } from "../../../protocol/hex.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
import { exactEip3009Settling } from "./eip3009-settling.ts";

const merchant = accountOf("merchant").address;

const { deployment, proxy, chain, startBlock, sendAsOperator } = useProxiedDeployment();

const pay = (options: PaymentOptions = {}) => deployment.pay({ to: merchant, ...options });

/** Why it would be refused; undefined where it would settle. */
async function refusal(call: SettleCall): Promise<string | undefined> {
  const { revert } = await simulateSettle(chain, call, { withFunds: true });
  return revert && (await exactEip3009Settling.explain(chain, call, revert)).situation;
}

async function settle(calls: readonly SettleCall[]) {
  const receipt = await sendAsOperator(exactEip3009Settling.transaction(calls, deployment.network));
  return { receipt, find: exactEip3009Settling.prove(receipt, deployment.network).find };
}

test("settles by a transaction to the token, whose receipt proves it", async () => {
  const call = await pay();
  expect(await refusal(call)).toBeUndefined();
  const { receipt, find } = await settle([call]);
  expect(receipt.succeeded).toBe(true);
  expect(find(call)).toEqual({ settled: true });
  expect(find(await pay())).toBeUndefined();
});

test("takes no more requests than a payment through the contract: one", async () => {
  const call = await pay();
  proxy.batches.length = 0;
  await simulateSettle(chain, call, { withFunds: false });
  expect(proxy.batches.map((batch) => batch.map(({ method }) => method))).toEqual([
    ["eth_getBlockByNumber", "eth_call"],
  ]);
});

test("a contract wallet and a delegated account pay like any other", async () => {
  const wallet = await deployment.createWallet("owner");
  const ofWallet = await pay({ payer: "owner", from: wallet });
  const delegated = accountOf("delegated").address;
  await deployment.delegate(delegated);
  const ofDelegated = await pay({ payer: "delegated" });
  for (const call of [ofWallet, ofDelegated]) {
    expect(await refusal(call)).toBeUndefined();
    expect((await settle([call])).find(call)).toEqual({ settled: true });
  }
});

test.each([
  { route: "straight", to: [merchant, accountOf("other merchant").address] },
  { route: "through the contract", to: [undefined, undefined] },
])("a batch $route carries the builder codes of its payments, and is proven as without", async ({ to }) => {
  const [first, second] = to.map((to) => (to === undefined ? {} : { to }));
  const other = { ...second, recipient: accountOf("other recipient").address };
  const calls = [await deployment.pay(first), await deployment.pay(first), await deployment.pay(other)].map(
    (call, index) => ({
      ...call,
      codes: { app: "shop", services: [`service_${index}`] },
    }),
  );
  const [submitted] = calls;
  if (submitted === undefined) throw new Error("no payment");
  await deployment.submitDirectly(submitted);
  const transaction = exactEip3009Settling.transaction(calls, deployment.network);
  expect(readCodes(transaction.data)).toEqual({
    app: "shop",
    services: ["service_0", "service_1", "service_2"],
  });
  const { find } = await settle(calls);
  expect(calls.map((call) => find(call)?.settled)).toEqual([false, true, true]);
});

describe("several in one transaction", () => {
  test("go straight to their payees, each proven by itself", async () => {
    const other = accountOf("other merchant").address;
    const calls = [await pay(), await pay({ to: other }), await pay({ value: 7n })];
    const { receipt, find } = await settle(calls);
    expect(receipt.succeeded).toBe(true);
    for (const call of calls) expect(find(call)).toEqual({ settled: true });
  });

  test("are not spoilt by one that was submitted by others, cancelled, or whose payer has nothing left", async () => {
    const [submitted, cancelled, good] = [await pay(), await pay({ payer: "canceller" }), await pay()];
    const empty = await pay({ funds: 9_999n });
    await deployment.submitDirectly(submitted);
    await deployment.send(deployment.usdc, await deployment.encodeCancellation("canceller", cancelled));
    const { find } = await settle([submitted, cancelled, good, empty]);
    const used = { settled: false, failure: "FiatTokenV2: authorization is used or canceled" };
    expect([find(submitted), find(cancelled)]).toEqual([used, used]);
    expect(find(good)).toEqual({ settled: true });
    expect(find(empty)).toEqual({ settled: false, failure: "ERC20: transfer amount exceeds balance" });
  });

  test("have gas enough when the wallets of all others burn what they may", async () => {
    const burner = await pay({ payer: "burner" });
    await deployment.makeGasBurner(burner.payment.payer);
    const burning = Array.from({ length: 49 }, (_, index) => ({
      ...burner,
      payment: { ...burner.payment, nonce: `0x${uintWord(BigInt(index + 1))}` as const },
    }));
    const good = await pay();
    const { receipt, find } = await settle([...burning, good]);
    expect(receipt.succeeded).toBe(true);
    expect(find(good)).toEqual({ settled: true });
    for (const call of burning) {
      expect(find(call)).toEqual({ settled: false, failure: "FiatTokenV2: invalid signature" });
    }
  });

  test("have gas enough for the largest signatures", async () => {
    const bad = await pay();
    const long = Array.from({ length: 14 }, (_, index): SettleCall => {
      const nonce = `0x${uintWord(BigInt(index + 1))}` as const;
      return { ...bad, payment: { ...bad.payment, nonce, signature: `0x${"5a".repeat(4_096)}` } };
    });
    const good = await pay();
    const { receipt, find } = await settle([...long, good]);
    expect(receipt.succeeded).toBe(true);
    expect(find(good)).toEqual({ settled: true });
  });
});

describe("is refused before it is sent", () => {
  test("when it was submitted, or cancelled, by others", async () => {
    const [submitted, cancelled] = [await pay(), await pay({ payer: "canceller" })];
    await deployment.submitDirectly(submitted);
    await deployment.send(deployment.usdc, await deployment.encodeCancellation("canceller", cancelled));
    expect(await refusal(submitted)).toBe("used_on_chain");
    expect(await refusal(cancelled)).toBe("used_on_chain");
  });

  test("when the payer has too little, or the issuer lets one of the two not take part", async () => {
    expect(await refusal(await pay({ funds: 9_999n }))).toBe("balance_too_small");
    const ofBlacklisted = await pay({ payer: "blacklisted" });
    await deployment.blacklist(ofBlacklisted.payment.payer);
    expect(await refusal(ofBlacklisted)).toBe("payer_blacklisted");
    const toBlacklisted = await pay({ to: accountOf("other merchant").address });
    await deployment.blacklist(toBlacklisted.payment.payTo);
    expect(await refusal(toBlacklisted)).toBe("recipient_blacklisted");
    const call = await pay();
    await deployment.pauseToken();
    expect(await refusal(call)).toBe("asset_paused");
  });

  test("when the payer's wallet uses up what a payment may use", async () => {
    const call = await pay({ payer: "burner" });
    await deployment.makeGasBurner(call.payment.payer);
    expect(await refusal(call)).toBe("token_refuses_signature");
  });

  test("when the token would say nothing and move nothing", async () => {
    const call = await pay();
    await deployment.setCode(deployment.usdc, onlyBalances);
    const { revert } = await simulateSettle(chain, call, { withFunds: true });
    expect(revert).toEqual({ kind: "unknown", data: "0x" });
    expect(await refusal(call)).toBe("would_revert");
  });
});

/**
 * A token that answers `balanceOf` with 2^255, and everything else with 0: PUSH0 CALLDATALOAD PUSH1 e0 SHR PUSH4 balanceOf
 * EQ PUSH1 ff SHL PUSH0 MSTORE PUSH1 20 PUSH0 RETURN
 */
const onlyBalances = "0x5f3560e01c6370a082311460ff1b5f5260205ff3";

test("neither a paused contract nor a missing role stands in its way", async () => {
  const call = await pay();
  await deployment.pauseContract();
  expect(await refusal(call)).toBeUndefined();
  expect((await settle([call])).find(call)).toEqual({ settled: true });
});

describe("what others have submitted is found", () => {
  const findPayout = async (call: SettleCall) => {
    const { number: toBlock } = await deployment.newestBlock();
    return exactEip3009Settling.findPayout(chain, { ...call, fromBlock: startBlock(), toBlock });
  };

  test("as paid, with their transaction", async () => {
    const call = await pay();
    expect(await findPayout(call)).toBeNull();
    const { transactionHash, blockNumber, blockHash } = await deployment.submitDirectly(call);
    expect(await findPayout(call)).toEqual({
      ...{ kind: "settled", hash: transactionHash, blockNumber, blockHash },
    });
    await expect(exactEip3009Settling.stateOf(chain, call)).resolves.toEqual({ used: true });
  });

  test("among others in one transaction", async () => {
    const calls = [await pay(), await pay(), await pay({ to: accountOf("other merchant").address })];
    const { transactionHash: hash } = await deployment.sendTogether(
      calls.map((call) => ({ to: deployment.usdc, data: deployment.encodeDirectSubmission(call) })),
    );
    for (const call of calls) expect(await findPayout(call)).toMatchObject({ kind: "settled", hash });
  });

  test("but not what was cancelled, and no use for another payee or value", async () => {
    const cancelled = await pay({ payer: "canceller" });
    await deployment.send(deployment.usdc, await deployment.encodeCancellation("canceller", cancelled));
    expect(await findPayout(cancelled)).toBeNull();
    const nonce = `0x${"17".repeat(32)}` as const;
    const [elsewhere, more] = [
      await pay({ payer: "double", to: accountOf("other merchant").address, authorizationNonce: nonce }),
      await pay({ payer: "other", value: 10_001n, authorizationNonce: nonce }),
    ];
    for (const call of [elsewhere, more]) await deployment.submitDirectly(call);
    const signed = { authorizationNonce: nonce } as const;
    expect(await findPayout(await pay({ payer: "double", ...signed }))).toBeNull();
    expect(await findPayout(await pay({ payer: "other", ...signed }))).toBeNull();
    expect(await findPayout(elsewhere)).toMatchObject({ kind: "settled" });
  });
});
