import { expect, test } from "vitest";
import type { Chain } from "../../chain/chain.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { refusals } from "../../protocol/refusals.ts";
import { createApprovalWaits } from "./approval-waits.ts";

/* Time stands still here: whatever is asked comes between two looks. */
const place = { network: { chainId: 8453, blockTimeMs: 2_000 } } as Chain;
const payment = { organizationId: "org", hash: "0x12" } as const;

/** Asks for gas money that is given as `outcomes` say, one for each time that it is really asked for. */
function startGiving(...outcomes: readonly (() => true | Invalid)[]) {
  const waits = createApprovalWaits(() => 1_000);
  let asked = 0;
  const give = async () => outcomes[asked++]?.();
  return { ask: () => waits.giveGasMoney(place, payment, give), asked: () => asked };
}

const refuse = () => refusals.usedHere();
const fail = () => {
  throw new Error("the budget does not cover it");
};

test.each([
  ["a refusal", refuse],
  ["a failure", fail],
])("%s is shared by those who ask at the same time, and by nobody afterwards", async (_, outcome) => {
  const { ask, asked } = startGiving(outcome, () => true);
  const [first, second] = await Promise.allSettled([ask(), ask()]);
  expect([second, asked()]).toEqual([first, 1]);
  expect([await ask(), asked()]).toEqual([true, 2]);
});

test("what was given is not given again between two looks", async () => {
  const { ask, asked } = startGiving(() => true, refuse);
  expect([await ask(), await ask(), asked()]).toEqual([true, true, 1]);
});
