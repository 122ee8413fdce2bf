import { afterAll, beforeAll, expect, test } from "vitest";
import { createFixtureEngine, testKeys } from "../../../src/fixtures/index.ts";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { type TestPayer, type TestPayerName, testPayers } from "../../../src/payer/test-payers.ts";
import type { Operation } from "../../../src/protocol/problems.ts";
import { contents } from "../../support/fixtures/pay.ts";

/* What each test payer stands for is what becomes of its payments, in every way to pay, with a chain and without. */

let harness: Harness<"base">;
const fixtures = createFixtureEngine({ networks: ["base"] });
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"] });
});
afterAll(() => harness?.close());

const names = Object.keys(testPayers) as TestPayerName[];
// By EIP-3009 last: that deploys the wallet that Permit2 cannot.
const ways = [{ method: "permit2" }, { scheme: "upto" }, { x402Version: 2 }] as const;

/** The reason, or that it is good. */
function told(answer: object): string {
  const { invalidReason, errorReason, isValid, success } = Object(answer);
  return invalidReason ?? errorReason ?? (isValid === true || success === true ? "success" : "nothing");
}

test.each(names)("%s", async (payer) => {
  const { outcome, settleOutcome, permit2Outcome }: TestPayer = testPayers[payer];
  for (const way of ways) {
    // The first payment of a wallet deploys it.
    await harness.reset();
    fixtures.reset();
    const isByPermit2 = !("x402Version" in way);
    const verify = (isByPermit2 ? permit2Outcome : undefined) ?? outcome;
    const expected = { verify, settle: settleOutcome ?? verify };

    const paid = await harness.pay({ network: "base", payer, ...way });
    expect({ verify: told(paid.verify.body), settle: told(paid.settle.body) }).toEqual(expected);

    const ask = async (operation: Operation) => {
      const headers = { "content-type": "application/json", authorization: testKeys.local.apiKey };
      const body = JSON.stringify(await fixtures.payment({ payer, ...way }));
      return told(
        contents(await fixtures.reply({ method: "POST", path: `/v1/${operation}`, headers, body })),
      );
    };
    expect({ verify: await ask("verify"), settle: await ask("settle") }).toEqual(expected);
  }
});
