import { expect, test } from "vitest";
import { createHarness, type Harness, type PaymentRequestBody } from "../../../src/harness/index.ts";
import { authorizationOf } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import { parsePaymentRequest } from "../../../src/methods/methods.ts";
import type { Channel } from "../../../src/observe/channels/channels.ts";
import { channels } from "../../../src/observe/channels/channels.ts";

/* What production does with a recoverer's key happens on the local chains too. */

/** Resolves at the first message that matches. */
function next<Message>(channel: Channel<Message>, matches: (message: Message) => boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unsubscribe = channel.subscribe((message) => {
    if (!matches(message)) return;
    unsubscribe();
    resolve();
  });
  return promise;
}

/** Settles a payment while a stranger submits its authorization straight to the token, and is mined first. */
async function settleFrontRun(harness: Harness<"base">, body: PaymentRequestBody) {
  const parsed = parsePaymentRequest(body);
  if (!parsed.ok) throw new Error("the payment is malformed");
  const { signature } = parsed.request.payment;
  const authorization = authorizationOf(parsed.request.payment);
  const { client, asset } = harness.networks.base;
  const stranger = "0x00000000000000000000000000000000DeaDBeef";
  await client.setBalance({ address: stranger, value: 10n ** 18n });
  await client.impersonateAccount({ address: stranger });

  const held = await harness.faults.chain("base").holdBlocks();
  const isSent = next(channels.transaction, ({ step }) => step === "broadcast");
  const settling = harness.settle(body);
  await isSent;
  await client.writeContract({
    ...asset,
    account: stranger,
    functionName: "transferWithAuthorization",
    args: [
      ...([authorization.from, authorization.to, authorization.value] as const),
      ...([authorization.validAfter, authorization.validBefore, authorization.nonce, signature] as const),
    ],
    gas: 200_000n,
    maxPriorityFeePerGas: 10n ** 11n,
    maxFeePerGas: 10n ** 12n,
  });
  await held.remove();
  const answer = await settling;
  return { answer, id: parsed.request.settlementId };
}

async function stateOf(harness: Harness<"base">, id: string): Promise<string> {
  const response = await fetch(`${harness.facilitator.url}/settlements/${id}`, {
    headers: { authorization: harness.organization.apiKey },
  });
  const settlement: unknown = await response.json();
  return String(Reflect.get(Object(settlement), "state"));
}

test("a payment that is front-run on the token is recovered, as in production", async () => {
  await using harness = await createHarness({ networks: ["base"] });
  const { recipient } = harness.organization;
  const body = await harness.sign({ network: "base", amount: 12_345n });
  const before = await harness.networks.base.balanceOf(recipient);
  const { answer, id } = await settleFrontRun(harness, body);

  expect(answer).toMatchObject({ status: 200, body: { success: true } });
  expect(await stateOf(harness, id)).toBe("recovered");
  expect((await harness.networks.base.balanceOf(recipient)) - before).toBe(12_345n);
  expect(await harness.networks.base.balanceOf(harness.networks.base.facilitatorContract.address)).toBe(0n);
});

test("with recovery switched off it stays failed, as in a service without a recoverer's key", async () => {
  await using harness = await createHarness({ networks: ["base"], recovery: false });
  const body = await harness.sign({ network: "base", amount: 12_345n });
  const { answer, id } = await settleFrontRun(harness, body);

  expect(answer.body).toMatchObject({ success: false, errorReason: "invalid_transaction_state" });
  expect(await stateOf(harness, id)).toBe("failed");
  expect(await harness.networks.base.balanceOf(harness.networks.base.facilitatorContract.address)).toBe(
    12_345n,
  );
});

test.each([1, 2] as const)(
  "a payment of version %i whose transaction was reverted may be signed again once nobody can use it any more",
  async (x402Version) => {
    await using harness = await createHarness({ networks: ["base"] });
    const { client } = harness.networks.base;
    const body = await harness.sign({ network: "base", payer: "fickle", x402Version, validForSeconds: 60 });
    const poll = { nextAction: "poll", paymentState: "unknown" };
    expect((await harness.settle(body)).body).toMatchObject({ success: false, ...poll });
    for (const send of [harness.verify, harness.settle]) expect((await send(body)).body).toMatchObject(poll);
    // It expires, and half an hour passes in which blocks might be replaced.
    await client.increaseTime({ seconds: 60 + 1_800 });
    await client.mine({ blocks: 1 });
    const over = { nextAction: "sign_again", paymentState: "not_taken" };
    const { settle, verify } = harness;
    expect((await settle(body)).body).toMatchObject({ success: false, ...over });
    expect((await verify(body)).body).toMatchObject({ isValid: false, ...over });
  },
);
