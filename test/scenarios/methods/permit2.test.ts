import { setTimeout as sleep } from "node:timers/promises";
import { encodeFunctionData, parseAbi } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { mock1271WalletDeployedBytecode } from "../../../src/contracts/mockWallets.ts";
import { withHighS } from "../../../src/fixtures/cases/payment-spec.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { addressWord, type Hex } from "../../../src/protocol/hex.ts";
import type { JsonResponse } from "../../../src/util/http-client.ts";
import type { Running } from "../../support/composition.ts";
import { type Call, takingOf, value } from "../../support/recovery-scene.ts";
import type { Body } from "../../support/service.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * Payments by Permit2, of schemes “exact” and “upto”, through the facilitator contract and straight to the merchant.
 */

const scene = useRecoveryScene();
let strandedBefore = 0n;
beforeEach(async () => {
  strandedBefore = await scene.stranded();
});

type Answer = {
  success: boolean;
  errorReason?: string;
  errorMessage?: string;
  transaction: Hex;
  amount?: string;
};
const start = (options: { settleWaitMs?: number } = {}) => scene.startService(options);
const answerOf = ({ body }: JsonResponse) => body as Answer;
const settle = async (running: Running, body: Body) => answerOf(await scene.post(running, "settle", body));
const verify = async (running: Running, body: Body) => (await scene.post(running, "verify", body)).body;
const used = { success: false, errorReason: "invalid_transaction_state", transaction: "" };
const paid = () => scene.balanceOf(scene.recipient());
const mined = (transaction: Hex) =>
  createLocalRpc(scene.chain.rpcUrl).request("eth_getTransactionReceipt", transaction);
const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/);

const multicall3 = parseAbi([
  "struct Call { address target; bytes callData; }",
  "function tryAggregate(bool requireSuccess, Call[] calls)",
]);

/** The same call, made by a contract that anybody can have call anything: Multicall3. */
function byContract({ from, to, data }: Call): Call {
  const args = [true, [{ target: to, callData: data }]] as const;
  return {
    from,
    to: "0xcA11bde05977b3631167028862bE2a173976CA11",
    data: encodeFunctionData({ abi: multicall3, functionName: "tryAggregate", args }),
  };
}

describe.each(["through the contract", "straight to the merchant"] as const)("a payment %s", (route) => {
  const sign = () =>
    scene.signPermit("funded", route === "straight to the merchant" ? { payTo: scene.recipient() } : {});

  test("is verified and settled once, and a repeat is told so", async () => {
    const running = await start();
    const body = await sign();
    expect(await verify(running, body)).toMatchObject({ isValid: true });
    const { success, transaction, amount } = await settle(running, body);
    expect({ success, transaction, amount }).toEqual({ success: true, transaction: hash, amount: undefined });
    expect(await mined(transaction)).toMatchObject({ status: "0x1" });
    expect(await settle(running, body)).toMatchObject(used);
    expect(await verify(running, body)).toMatchObject({ isValid: false });
    expect(await scene.settlement(running, body)).toMatchObject({ state: "settled", transaction });
    expect(await paid()).toBe(value);
    expect(await scene.stranded()).toBe(strandedBefore);
  });

  test("shares transactions with others of its kind", async () => {
    const running = await start({ settleWaitMs: 20_000 });
    const before = await scene.operatorTransactions();
    const release = await scene.holdMining();
    const first = await scene.settleInPool(running, await sign());
    const bodies = await Promise.all(Array.from({ length: 12 }, sign));
    const answers = bodies.map((body) => settle(running, body));
    await scene.untilInPool(2);
    await release();
    for (const answer of [answerOf(await first.answer), ...(await Promise.all(answers))]) {
      expect(answer).toMatchObject({ success: true, transaction: hash });
    }
    expect((await scene.operatorTransactions()) - before).toBeLessThan(8);
    expect(await paid()).toBe(13n * value);
  });

  test("that somebody else submits first is the success it is", async () => {
    const running = await start();
    const body = await sign();
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(running, body);
    const theirs = await scene.sendAhead(scene.submission(body));
    await release();
    const stopMining = scene.mineSteadily();
    const { success, transaction } = answerOf(await answer);
    stopMining();
    expect(success).toBe(true);
    if (route === "straight to the merchant") expect(transaction).toBe(theirs);
    else expect(await scene.settlement(running, body)).toMatchObject({ state: "recovered", transaction });
    expect(await paid()).toBe(value);
    expect(await scene.stranded()).toBe(strandedBefore);
  });

  test("that a contract submits first leaves no proof: no success, and nobody is told to sign again", async () => {
    const running = await start();
    const body = await sign();
    const answer = answerOf(await scene.settleBehind(running, body, byContract(scene.submission(body))));
    const told = { ...used, situation: "transaction_failed", nextAction: "poll", paymentState: "unknown" };
    expect(answer).toMatchObject(told);
    await scene.severalRounds();
    expect(await settle(running, body)).toMatchObject(told);
    const isStraight = route === "straight to the merchant";
    expect(await paid()).toBe(isStraight ? value : 0n);
    expect(await scene.stranded()).toBe(strandedBefore + (isStraight ? 0n : value));
  });

  test("whose payer cancels its nonce in time has paid nothing", async () => {
    const running = await start();
    const body = await sign();
    const answer = await scene.settleBehind(running, body, await scene.cancellation(body));
    expect(answerOf(answer)).toMatchObject(used);
    await scene.severalRounds();
    expect(await scene.settlement(running, body)).toMatchObject({ state: "failed" });
    expect(await paid()).toBe(0n);
  });

  test("was used on chain before anybody asked for it here", async () => {
    const running = await start();
    const body = await sign();
    await scene.mine(scene.submission(body));
    expect(await verify(running, body)).toMatchObject({ isValid: false, situation: "used_on_chain" });
    expect(await settle(running, body)).toMatchObject(used);
  });
});

test("a signature that is written in another way pays nothing more", async () => {
  const running = await start();
  const body = await scene.signPermit("funded");
  const { payload } = body.paymentPayload;
  const twin = { ...body, paymentPayload: { ...body.paymentPayload, payload: { ...payload } } };
  twin.paymentPayload.payload.signature = withHighS(payload.signature);
  expect(await verify(running, twin)).toMatchObject({ invalidReason: "invalid_permit2_signature" });
  expect(await settle(running, body)).toMatchObject({ success: true });
  expect(await settle(running, twin)).toMatchObject({ success: false, situation: "settled_before" });
  expect(await paid()).toBe(value);
});

describe("a signature that is encoded in another way", () => {
  /** The same payment, with another text for its signature. */
  function withSignature(body: Body, write: (signature: Hex) => Hex): Body {
    const { paymentPayload } = body;
    const payload = { ...paymentPayload.payload, signature: write(paymentPayload.payload.signature) };
    return { ...body, paymentPayload: { ...paymentPayload, payload } };
  }
  const endOf = (signature: Hex) => Number.parseInt(signature.slice(130), 16);

  test.each<[string, (signature: Hex) => Hex]>([
    ["with v of 0 or 1", (signature) => `0x${signature.slice(2, 130)}0${endOf(signature) - 27}`],
    ["in capitals", (signature) => `0x${signature.slice(2).toUpperCase()}`],
  ])("%s pays, once", async (_, write) => {
    const running = await start();
    const body = await scene.signPermit("funded");
    const other = withSignature(body, write);
    expect(await verify(running, other)).toMatchObject({ isValid: true });
    expect(await settle(running, other)).toMatchObject({ success: true });
    expect(await settle(running, body)).toMatchObject({ success: false, situation: "settled_before" });
    expect(await paid()).toBe(value);
  });

  test.each<[string, (signature: Hex) => Hex]>([
    [
      "in the short form (EIP-2098)",
      (signature) => {
        const s = BigInt(`0x${signature.slice(66, 130)}`) | (BigInt(endOf(signature) - 27) << 255n);
        return `0x${signature.slice(2, 66)}${s.toString(16).padStart(64, "0")}`;
      },
    ],
    ["with a byte behind it", (signature) => `${signature}00`],
    ["with v of 29", (signature) => `0x${signature.slice(2, 130)}1d`],
    ["of nothing", () => "0x"],
  ])("%s is refused, and the payment stays good as it was signed", async (_, write) => {
    const running = await start();
    const body = await scene.signPermit("funded");
    const other = withSignature(body, write);
    expect(await verify(running, other)).toMatchObject({ isValid: false });
    expect(await settle(running, other)).toMatchObject({ success: false, transaction: "" });
    expect(await paid()).toBe(0n);
    expect(await settle(running, body)).toMatchObject({ success: true });
    expect(await paid()).toBe(value);
  });
});

describe("the spender", () => {
  const withSpender = (body: Body, spender: string): Body => {
    const { paymentPayload } = body;
    const { permit2Authorization: permit } = Object(paymentPayload.payload);
    const payload = { ...paymentPayload.payload, permit2Authorization: { ...permit, spender } };
    return { ...body, paymentPayload: { ...paymentPayload, payload } };
  };

  test("may be written in any casing: the public documents have one whose checksum is wrong", async () => {
    const running = await start();
    const body = await scene.signPermit("funded", { max: value });
    const other = withSpender(body, "0x4020a4f3b7b90ccA423B9fabCc0CE57C6C240002");
    expect(await verify(running, other)).toMatchObject({ isValid: true });
    expect(await settle(running, other)).toMatchObject({ success: true });
    expect(await paid()).toBe(value);
  });

  test.each([
    "0x4020615294c913F045dc10f0a5cdEbd86c280001",
    "0x402039b3d6E6BEC5A02c2C9fd937ac17A6940002",
    "0x402015c795ecb48A360bDC6e35a2EaEb313a0002",
    "0x4020633461b2895a48930Ff97eE8fCdE8E520002",
  ])("%s, a proxy of earlier documents, is refused by name", async (spender) => {
    const running = await start();
    for (const terms of [{}, { max: value }]) {
      const body = withSpender(await scene.signPermit("funded", terms), spender);
      expect(await settle(running, body)).toMatchObject({
        success: false,
        errorReason: "invalid_permit2_spender",
      });
    }
    expect(await paid()).toBe(0n);
  });
});

test("a signature names no payer: of two wallets of one owner that take it as it is, each pays once, and no other", async () => {
  const running = await start();
  const { node, fund, approvePermit2 } = scene.chain;
  const other: Hex = `0x${"0e".repeat(20)}`;
  await node.request("anvil_setCode", other, mock1271WalletDeployedBytecode);
  const slot: Hex = `0x${"0".repeat(64)}`;
  await node.request("anvil_setStorageAt", other, slot, `0x${addressWord(testPayers.smartWallet.owner)}`);
  await fund(other, 10n * value);
  await approvePermit2(other, 2n ** 256n - 1n);
  const body = await scene.signPermit("smartWallet");
  const paidBy = (from: Hex): Body => {
    const { paymentPayload } = body;
    const { permit2Authorization: permit } = Object(paymentPayload.payload);
    const payload = { ...paymentPayload.payload, permit2Authorization: { ...permit, from } };
    return { ...body, paymentPayload: { ...paymentPayload, payload } };
  };
  const answers = await Promise.all(
    [body, paidBy(other), body, paidBy(other)].map((one) => scene.post(running, "settle", one)),
  );
  expect(answers.filter((answer) => answerOf(answer).success)).toHaveLength(2);
  expect(await paid()).toBe(2n * value);
  expect(await scene.balanceOf(other)).toBe(9n * value);
  expect(await settle(running, paidBy(testPayers.funded.address))).toMatchObject({ success: false });
  expect(await paid()).toBe(2n * value);
});

test("one nonce pays once, by either scheme, and is none of EIP-3009", async () => {
  const running = await start();
  const nonce = BigInt(`0x${"a5".repeat(32)}`) ^ BigInt(Date.now());
  const first = await scene.signPermit("funded", { nonce });
  expect(await settle(running, first)).toMatchObject({ success: true });
  for (const terms of [
    { nonce, amount: 2n * value },
    { nonce, max: value },
  ]) {
    const other = await scene.signPermit("funded", terms);
    expect(scene.idOf(other)).toBe(scene.idOf(first));
    expect(await settle(running, other)).toMatchObject(used);
  }
  const bytes: Hex = `0x${nonce.toString(16).padStart(64, "0")}`;
  expect(await settle(running, await scene.sign("funded", { nonce: bytes }))).toMatchObject({
    success: true,
  });
  expect(await paid()).toBe(2n * value);
});

test("a transfer that moves nothing is no success, whatever the receipt says", async () => {
  const { request } = createLocalRpc(scene.chain.rpcUrl);
  const running = await start({ settleWaitMs: 3_000 });
  const body = await scene.signPermit("funded");
  const release = await scene.holdMining();
  const { answer } = await scene.settleInPool(running, body);
  const { facilitatorContract } = scene.chain;
  const code = await request("eth_getCode", facilitatorContract, "latest");
  // Takes every call and does nothing.
  await request("anvil_setCode", facilitatorContract, "0x00");
  await release();
  expect(await answer).toMatchObject({ status: 503, body: { errorReason: "settlement_pending" } });
  await request("anvil_setCode", facilitatorContract, code);
  expect(await paid()).toBe(0n);
});

describe("scheme upto", () => {
  const max = 20_000n;
  const sign = (amount: bigint) => scene.signPermit("funded", { max, amount });
  const whole = (body: Body) => takingOf(body, max);

  test("takes what settle asks for, once, and says how much", async () => {
    const running = await start();
    const body = await sign(1_858n);
    expect(await verify(running, whole(body))).toMatchObject({ isValid: true });
    expect(await settle(running, body)).toMatchObject({ success: true, transaction: hash, amount: "1858" });
    expect(await paid()).toBe(1_858n);
    for (const again of [body, whole(body)]) expect(await settle(running, again)).toMatchObject(used);
    expect(await verify(running, whole(body))).toMatchObject({ isValid: false });
    const told = { state: "settled", value: "1858", maximum: "20000" };
    expect(await scene.settlement(running, body)).toMatchObject(told);
  });

  test("takes nothing without a transaction, and then nothing any more", async () => {
    const running = await start();
    const before = await scene.operatorTransactions();
    const body = await sign(0n);
    expect(await settle(running, body)).toMatchObject({ success: true, transaction: "", amount: "0" });
    expect(await settle(running, whole(body))).toMatchObject({ success: false, situation: "settled_before" });
    expect(await verify(running, whole(body))).toMatchObject({ isValid: false });
    expect(await scene.settlement(running, body)).toMatchObject({ state: "settled", transaction: "" });
    expect(await scene.operatorTransactions()).toBe(before);
    expect(await paid()).toBe(0n);
  });

  test("taking nothing counts against the gas budget all the same: payers and rows would cost nothing else", async () => {
    const { request } = createLocalRpc(scene.chain.rpcUrl);
    const { baseFeePerGas } = Object(await request("eth_getBlockByNumber", "latest", false));
    const running = await scene.startService({
      network: { dailyGasBudget: 3n * 155_000n * (2n * BigInt(baseFeePerGas) + 2n * 10n ** 9n) },
    });
    let settled = 0;
    for (let last = 200; last === 200; settled++) {
      expect(settled).toBeLessThan(50);
      const { status, body } = await scene.post(running, "settle", await sign(0n));
      if (status !== 200) expect({ status, body }).toMatchObject({ status: 429, body: { success: false } });
      last = status;
    }
    expect(settled).toBeGreaterThan(1);
    // As does one that takes something.
    expect(await scene.post(running, "settle", await sign(1n))).toMatchObject({ status: 429 });
    expect(await paid()).toBe(0n);
  });

  test("takes no more than the payer allowed", async () => {
    const running = await start();
    expect(await settle(running, await sign(max + 1n))).toMatchObject({
      ...{ success: false, errorReason: "invalid_upto_evm_payload_settlement_exceeds_amount" },
    });
    expect(await paid()).toBe(0n);
  });

  test("asked for two amounts at once takes the first, and one request hears of it", async () => {
    const running = await start({ settleWaitMs: 20_000 });
    const body = await sign(1_000n);
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(running, body);
    const other = scene.post(running, "settle", takingOf(body, 2_000n));
    await sleep(200);
    await release();
    const answers = [await answer, await other].map(answerOf);
    expect(answers.filter(({ success }) => success)).toMatchObject([{ amount: "1000" }]);
    expect(await paid()).toBe(1_000n);
  });

  test("whose answer was too late gives the first amount to whoever asks again, for whatever amount", async () => {
    const running = await start({ settleWaitMs: 1_000 });
    const body = await sign(1_000n);
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(running, body);
    expect(await answer).toMatchObject({ status: 503, body: { errorReason: "settlement_pending" } });
    await release();
    await scene.untilState(running, body, "settled");
    expect(await settle(running, takingOf(body, 1_500n))).toMatchObject({ success: true, amount: "1000" });
    expect(await settle(running, body)).toMatchObject(used);
    expect(await paid()).toBe(1_000n);
  });

  test("is verified as long as what the payer has holds all that was verified", async () => {
    const running = await start();
    const half = { max: (await scene.balanceOf(testPayers.funded.address)) / 2n, amount: 1n };
    const bodies = [];
    for (let index = 0; index < 3; index++) bodies.push(await scene.signPermit("funded", half));
    const verdicts = [];
    for (const body of bodies) verdicts.push(await verify(running, takingOf(body, half.max)));
    expect(verdicts).toMatchObject([
      ...[{ isValid: true }, { isValid: true }],
      { isValid: false, invalidReason: "permit2_insufficient_balance", situation: "balance_taken_up" },
    ]);
    expect(await settle(running, bodies[0])).toMatchObject({ success: true, amount: "1" });
    expect(await verify(running, takingOf(bodies[2], half.max - 1n))).toMatchObject({ isValid: false });
    const smaller = { ...half, max: half.max - 1n };
    const last = await scene.signPermit("funded", smaller);
    expect(await verify(running, takingOf(last, smaller.max))).toMatchObject({ isValid: true });
  });
});

describe("maxima that were verified and not settled", () => {
  const isValid = { isValid: true };
  const takenUp = { isValid: false, situation: "balance_taken_up", nextAction: "wait" };
  /** Almost all that the payer has: two of them are too much. */
  const most = async () => (3n * (await scene.balanceOf(testPayers.funded.address))) / 4n;
  const sign = (max: bigint) => scene.signPermit("funded", { max, amount: 1n });

  test("of one approval do not stand in each other's way, as a shop has them that fails once", async () => {
    const running = await start();
    const max = 20_000n;
    const signBringing = () => scene.signPermit("unapproved", { max, amount: value, approval: {} });
    for (let time = 1; time <= 3; time++) {
      expect(await verify(running, takingOf(await signBringing(), max))).toMatchObject(isValid);
    }
    for (let time = 1; time <= 2; time++) {
      const body = await signBringing();
      expect(await verify(running, takingOf(body, max))).toMatchObject(isValid);
      expect(await settle(running, body)).toMatchObject({ success: true });
      expect(await verify(running, takingOf(await signBringing(), max))).toMatchObject(isValid);
    }
    expect(await paid()).toBe(2n * value);
  });

  test("count no more once another instance has settled them", async () => {
    const [one, another] = [await start(), await start()];
    const max = await most();
    const [first, second] = [await sign(max), await sign(max)];
    expect(await verify(one, takingOf(first, max))).toMatchObject(isValid);
    expect(await verify(one, takingOf(second, max))).toMatchObject(takenUp);
    expect(await settle(another, first)).toMatchObject({ success: true });
    expect(await verify(one, takingOf(second, max))).toMatchObject(isValid);
  });

  test("count for their organization, and for some minutes, however long they are good", async () => {
    const running = await start();
    const max = await most();
    const inAnHour = (await scene.chain.now()) + 3_600n;
    const first = await scene.signPermit("funded", { max, amount: 1n, deadline: inAnHour });
    const second = await scene.signPermit("funded", { max, amount: 1n, deadline: inAnHour });
    expect(await verify(running, takingOf(first, max))).toMatchObject(isValid);
    const refused = Object(await verify(running, takingOf(second, max)));
    expect(refused).toMatchObject(takenUp);
    expect(refused.retryAfterSeconds).toBeGreaterThan(200);
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(301);
    const rival = { ...running, key: running.rivalKey };
    expect(await verify(rival, takingOf(second, max))).toMatchObject(isValid);
    await scene.chain.advanceTime(refused.retryAfterSeconds);
    expect(await verify(running, takingOf(second, max))).toMatchObject(isValid);
  });
});

describe("an approval that comes with the payment", () => {
  const isValid = { isValid: true };

  test.each([
    ["exact", {}],
    ["exact, straight to the merchant", { straight: true }],
    ["upto", { max: 20_000n, amount: 1_858n }],
  ] as const)("is submitted with it where Permit2 may not take enough: %s", async (_, terms) => {
    const running = await start();
    const straight = "straight" in terms && { payTo: scene.recipient() };
    const body = await scene.signPermit("unapproved", { ...terms, ...straight, approval: {} });
    const whole = "max" in terms ? takingOf(body, terms.max) : body;
    expect(await verify(running, whole)).toMatchObject(isValid);
    expect(await settle(running, body)).toMatchObject({ success: true, transaction: hash });
    expect(await paid()).toBe("amount" in terms ? terms.amount : value);
    // A second one of the same payer has the next nonce.
    const next = await scene.signPermit("unapproved", { ...straight, approval: {} });
    expect(await settle(running, next)).toMatchObject({ success: true });
  });

  test("shares a transaction with others", async () => {
    const running = await start({ settleWaitMs: 20_000 });
    const release = await scene.holdMining();
    const first = await scene.settleInPool(running, await scene.signPermit("funded"));
    const bodies = [
      await scene.signPermit("unapproved", { approval: {} }),
      await scene.signPermit("approvedShort", { approval: {} }),
      ...(await Promise.all([1, 2, 3].map(() => scene.signPermit("funded")))),
    ];
    const answers = bodies.map((body) => settle(running, body));
    await scene.untilInPool(2);
    await release();
    for (const answer of [answerOf(await first.answer), ...(await Promise.all(answers))]) {
      expect(answer).toMatchObject({ success: true, transaction: hash });
    }
    expect(await paid()).toBe(6n * value);
  });

  test("is left out where Permit2 may take enough: it would lower that", async () => {
    const running = await start();
    const approval = {};
    expect(await settle(running, await scene.signPermit("funded", { approval }))).toMatchObject({
      success: true,
    });
    expect(await settle(running, await scene.signPermit("funded"))).toMatchObject({ success: true });
  });

  test("is of no use where it is not submitted", async () => {
    const running = await scene.startService({ network: { gasSponsoring: [] } });
    const body = await scene.signPermit("unapproved", { approval: {} });
    const required = { errorReason: "permit2_allowance_required", situation: "allowance_too_small" };
    expect(await settle(running, body)).toMatchObject({ success: false, ...required });
  });

  test("that somebody submits first does no harm", async () => {
    const running = await start();
    const body = await scene.signPermit("unapproved", { approval: {} });
    await scene.mine(scene.approvalOf(body));
    expect(await verify(running, body)).toMatchObject(isValid);
    expect(await settle(running, body)).toMatchObject({ success: true });
    expect(await paid()).toBe(value);
  });

  test("is used up by one of two payments; the other is told, and pays with the next", async () => {
    const running = await start({ settleWaitMs: 20_000 });
    const bodies = await Promise.all([1, 2].map(() => scene.signPermit("unapproved", { approval: {} })));
    const before = await scene.operatorTransactions();
    const answers = await Promise.all(bodies.map((body) => settle(running, body)));
    const refused = answers.filter(({ success }) => !success);
    const situation = expect.stringMatching(/^(approval_refused|balance_taken_up)$/);
    expect(refused).toMatchObject([{ situation }]);
    // Nothing was sent of the other, which would have failed on chain.
    expect((await scene.operatorTransactions()) - before).toBe(1);
    expect(await paid()).toBe(value);
    const again = await scene.signPermit("unapproved", { approval: {} });
    expect(await settle(running, again)).toMatchObject({ success: true });
  });

  test("that the token refuses is named, with the nonce that it expects", async () => {
    const running = await start();
    const body = await scene.signPermit("unapproved", { approval: { nonce: 999n } });
    expect(await verify(running, body)).toMatchObject({
      ...{ isValid: false, invalidReason: "permit2_allowance_required", situation: "approval_refused" },
      invalidMessage: expect.stringMatching(/its nonce is 999, and the payer's next one is \d+\. Sign/),
    });
  });
});
