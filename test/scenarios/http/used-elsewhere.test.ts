import { describe, expect, test } from "vitest";
import type { ChainReader } from "../../../src/chain/chain-reader.ts";
import { strangerAddress } from "../../../src/fixtures/cases/payment-spec.ts";
import { encodeSubmission } from "../../../src/methods/exact-eip3009/on-chain/token-calls.ts";
import type { X402Version } from "../../../src/protocol/requests.ts";
import { compose, type Running } from "../../support/composition.ts";
import type { Body } from "../../support/service.ts";
import { useComposition } from "../../support/use-composition.ts";

/*
 * A ledger does not know every payment that was made: it was restored or archived, or somebody submitted the payment straight
 * to the token. Whatever such a payment is refused for, its payer is never advised to sign another.
 */

const composition = useComposition();

const exact = (body: Body) => body.paymentPayload.payload;
const usedOnChain = { nextAction: "ask_operator", paymentState: "unknown" };
const unused = { nextAction: "sign_again", paymentState: "not_taken" };

/** The reason of the refusal, as verify gives it. */
const refusedFor = {
  "has expired": {
    // That it was used comes before that it is too late.
    reason: "invalid_transaction_state",
    change: (_body: Body) => composition.chain.advanceTime(660),
  },
  "is to have another price": {
    reason: "invalid_exact_evm_payload_authorization_value",
    reasonV2: "invalid_exact_evm_payload_authorization_value_mismatch",
    change({ paymentRequirements, paymentPayload }: Body) {
      const price = paymentPayload.x402Version === 1 ? "maxAmountRequired" : "amount";
      paymentRequirements[price] = "20000";
    },
  },
  "has a damaged signature": {
    reason: "invalid_exact_evm_payload_signature",
    change(body: Body) {
      const { signature } = exact(body);
      exact(body).signature = `0x${signature.startsWith("0x11") ? "22" : "11"}${signature.slice(4)}`;
    },
  },
  "is to another recipient": {
    reason: "invalid_exact_evm_payload_recipient_mismatch",
    change(body: Body) {
      exact(body).authorization.to = strangerAddress;
    },
  },
};
const anotherPrice = refusedFor["is to have another price"];

/** Submits a payment straight to the token, as anybody may who has seen it. */
async function submitDirectly(body: Body): Promise<void> {
  const { node, asset } = composition.chain;
  const { authorization, signature } = exact(body);
  await node.request("anvil_impersonateAccount", strangerAddress);
  await node.request("anvil_setBalance", strangerAddress, "0xde0b6b3a7640000");
  await node.request("eth_sendTransaction", {
    ...{ from: strangerAddress, to: asset.address, gas: "0x493e0" },
    data: encodeSubmission(authorization, signature),
  });
  await node.request("evm_mine");
}

/** Settles a payment, and loses the ledger that says so. */
async function settleElsewhere(body: Body): Promise<void> {
  const elsewhere = await composition.start();
  expect((await composition.post(elsewhere, "settle", body)).body).toMatchObject({ success: true });
  await composition.stopAll();
  await composition.openDirectory();
}

async function answersTo(running: Running, body: Body): Promise<readonly Body[]> {
  const answers: Body[] = [];
  for (const operation of ["verify", "settle"] as const) {
    const { status, body: answer } = await composition.post(running, operation, body);
    expect(status).toBe(200);
    answers.push(answer);
  }
  return answers;
}

const versions: readonly X402Version[] = [1, 2];

describe.each(Object.entries(refusedFor))("a payment that %s", (_name, { change, ...refused }) => {
  test.each(
    versions.flatMap((x402Version) => [
      { x402Version, how: "was settled with a ledger that is lost", pay: settleElsewhere },
      { x402Version, how: "was submitted straight to the token", pay: submitDirectly },
    ]),
  )("and $how is not signed again (version $x402Version)", async ({ x402Version, pay }) => {
    const body = await composition.payment("funded", 600, x402Version);
    const payer = exact(body).authorization.from;
    const before = await composition.balanceOf(payer);
    await pay(body);
    expect(await composition.balanceOf(payer)).toBe(before - 10_000n);
    await change(body);
    const [verify, settle] = await answersTo(await composition.start(), body);
    const reason = x402Version === 2 && "reasonV2" in refused ? refused.reasonV2 : refused.reason;
    expect(verify).toMatchObject({ isValid: false, invalidReason: reason, ...usedOnChain });
    expect(settle).toMatchObject({ success: false, ...usedOnChain });
  });

  test("and was used by nobody is signed again", async () => {
    const body = await composition.payment();
    await change(body);
    const answers = await answersTo(await composition.start(), body);
    for (const answer of answers) expect(answer).toMatchObject(unused);
  });
});

/** A node whose views all give 0. */
function sayingUnused(reader: ChainReader): ChainReader {
  return {
    ...reader,
    async ask(calls, options) {
      const answers = await reader.ask(calls, options);
      return answers.map((answer) =>
        answer.error === undefined ? { ...answer, result: zeroWords(answer.result) } : answer,
      );
    },
  };
}

/** The answer to views with 0 for each word that was returned: see `callViews`. */
function zeroWords(result: unknown): unknown {
  if (typeof result !== "string") return result;
  const words = result.slice(2).match(/.{64}/g) ?? [];
  return `0x${words.map((word, index) => (index > 0 && index % 3 === 0 ? "0".repeat(64) : word)).join("")}`;
}

test("a payment that was used is not signed again because the first of two endpoints says that it was not", async () => {
  const { rpcUrl } = composition.chain;
  const body = await composition.payment();
  await submitDirectly(body);
  anotherPrice.change(body);
  const running = await composition.start({
    network: composition.configuration({ rpcUrls: [rpcUrl, `${rpcUrl}/?second`] }),
    wrap: {
      chain: (chain) => ({
        ...chain,
        endpoints: () =>
          chain
            .endpoints()
            .map((view) => (view.endpoint === "1" ? { ...view, reader: sayingUnused(view.reader) } : view)),
      }),
    },
  });
  for (const answer of await answersTo(running, body)) expect(answer).toMatchObject(usedOnChain);
});

test("a payment that expires while it waits to be sent, and was used meanwhile, is not signed again", async () => {
  const sent = Promise.withResolvers<void>();
  const turn = Promise.withResolvers<void>();
  const last = Promise.withResolvers<void>();
  let late: string | undefined;
  let validBefore = 0n;
  const running = await composition.start({
    wrap: {
      ledger: (ledger) => ({
        ...ledger,
        claims: {
          ...ledger.claims,
          async claim(...claimed) {
            sent.resolve();
            await turn.promise;
            return ledger.claims.claim(...claimed);
          },
        },
      }),
      chain: (chain) => ({
        ...chain,
        async simulate(transaction, options) {
          const simulated = await chain.simulate(transaction, options);
          if (late === undefined || !transaction.data.includes(late.slice(2))) return simulated;
          last.resolve();
          // The last moment at which it may still be sent.
          return {
            ...simulated,
            head: { ...simulated.head, timestamp: validBefore - 6n },
          };
        },
      }),
    },
  });
  const ahead = composition.post(running, "settle", await composition.payment());
  await sent.promise;
  const body = await composition.payment();
  late = exact(body).authorization.nonce;
  validBefore = BigInt(exact(body).authorization.validBefore);
  const answer = composition.post(running, "settle", body);
  await last.promise;
  await submitDirectly(body);
  turn.resolve();
  expect((await ahead).body).toMatchObject({ success: true });
  expect((await answer).body).toMatchObject({ success: false, ...usedOnChain });
});

describe("where the chain cannot be asked", () => {
  test("nobody is advised to sign again: the same payment is to be sent again", async () => {
    const body = await composition.payment();
    anotherPrice.change(body);
    const cutOff = await compose(composition.chain);
    await cutOff.openDirectory();
    const running = await cutOff.start();
    await cutOff.proxy.close();
    for (const operation of ["verify", "settle"] as const) {
      const answer = await cutOff.post(running, operation, body);
      expect(answer).toMatchObject({
        status: 200,
        body: { nextAction: "retry_same_payment", paymentState: "unknown", retryAfterSeconds: 2 },
      });
      if (operation === "verify")
        expect(answer.body).toMatchObject({
          invalidReason: anotherPrice.reason,
          invalidMessage: expect.stringContaining("sign no other before"),
        });
    }
    await cutOff.stopAll();
  });
});

test("a flood of refusals asks the chain in few requests", async () => {
  const running = await composition.start();
  const bodies = await Promise.all(Array.from({ length: 200 }, () => composition.payment()));
  for (const body of bodies) anotherPrice.change(body);
  composition.proxy.take();
  const answers = await Promise.all(bodies.map((body) => composition.post(running, "verify", body)));
  for (const { body } of answers) expect(body).toMatchObject(unused);
  const asked = composition.proxy.take().flat();
  expect(asked.filter((method) => method === "eth_call").length).toBeLessThan(bodies.length / 4);
});
