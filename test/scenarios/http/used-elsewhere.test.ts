import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { strangerAddress } from "../../../src/fixtures/cases/payment-spec.ts";
import { encodeSubmission } from "../../../src/judge/scene/token-calls.ts";
import type { X402Version } from "../../../src/protocol/requests.ts";
import { type Composition, compose, type Running } from "../../support/composition.ts";
import type { Body } from "../../support/service.ts";

/*
 * A ledger does not know every payment that was made: it was restored or archived, or somebody submitted the payment straight
 * to the token. Once such a payment has expired, its payer is not advised to sign another.
 */

let composition: Composition;
beforeAll(async () => {
  composition = await compose();
});
afterAll(() => composition.close());
beforeEach(() => composition.openDirectory());
afterEach(() => composition.stopAll());

const exact = (body: Body) => body.paymentPayload.payload;
const usedOnChain = { nextAction: "ask_operator", paymentState: "unknown" };

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

describe("a payment that has expired", () => {
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
    await composition.chain.advanceTime(660);
    const [verify, settle] = await answersTo(await composition.start(), body);
    expect(verify).toMatchObject({
      isValid: false,
      invalidReason: "invalid_transaction_state",
      ...usedOnChain,
    });
    expect(settle).toMatchObject({
      success: false,
      errorReason: "invalid_transaction_state",
      ...usedOnChain,
    });
  });

  test("and was used by nobody is signed again", async () => {
    const body = await composition.payment();
    await composition.chain.advanceTime(660);
    for (const answer of await answersTo(await composition.start(), body)) {
      expect(answer).toMatchObject({ nextAction: "sign_again", paymentState: "not_taken" });
    }
  });
});
