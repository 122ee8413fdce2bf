import { describe, expect, test } from "vitest";
import { testPayers } from "../payer/test-payers.ts";
import { networks } from "../protocol/networks.ts";
import { methodByNonces, methods } from "./methods.ts";
import { type JudgedPayment, refuseByState, type StateFacts } from "./payment-state.ts";
import { permit2Address } from "./permit2/permit.ts";

const { usdc } = networks.base;
const payer = testPayers.funded.address;
const approval = {
  ...{ from: payer, asset: usdc.address, spender: permit2Address, amount: "10", nonce: "3", deadline: "9" },
  ...{ signature: `0x${"12".repeat(65)}`, version: "1" },
};

const judged = (payload: string | null = null): JudgedPayment => ({
  ...{ payment: { asset: usdc.address, payer, payload }, needed: 10n, token: usdc },
  ...{ network: "base", recipient: testPayers.empty.address },
});

/** In the order in which they are said. */
const usual: readonly (readonly [StateFacts, string])[] = [
  [{ authorizationUsed: true }, "used_on_chain"],
  [{ assetPaused: true }, "asset_paused"],
  [{ payerBlacklisted: true }, "payer_blacklisted"],
  [{ recipientBlacklisted: true }, "recipient_blacklisted"],
  [{ contractBlacklisted: true }, "contract_blacklisted"],
  [{ payerBalance: 9n }, "balance_too_small"],
];

const byToken = [[{ failingFactory: usdc.address }, "wallet_not_deployed"], ...usual] as const;
const byPermit2 = [
  [{ assetMissing: true }, "asset_without_code"],
  [{ permit2Missing: true }, "proxy_missing"],
  [{ proxyMissing: true }, "proxy_missing"],
  ...usual,
  [{ payerAllowance: 9n }, "allowance_too_small"],
  [{ assetKeepsFee: true }, "permit_would_revert"],
] as const;

describe.each(methods.map((method) => [method.name, method] as const))("by %s", (_, method) => {
  const facts = method.transfer === "permit2" ? byPermit2 : byToken;

  test("each fact means one situation, and of several the first is said", () => {
    for (const [index, [fact, situation]] of facts.entries()) {
      expect(refuseByState(method, fact, judged())?.situation).toBe(situation);
      const all: StateFacts = Object.assign({}, ...facts.slice(index).map(([one]) => one));
      expect(refuseByState(method, all, judged())?.situation).toBe(situation);
    }
  });

  test("nothing is said of what is not known, or stands against nothing", () => {
    const good: StateFacts = { authorizationUsed: false, payerBalance: 10n, payerAllowance: 10n };
    for (const known of [{}, good]) expect(refuseByState(method, known, judged())).toBeUndefined();
  });
});

test("an approval that is submitted stands for what Permit2 may take, unless the token is known to refuse it", () => {
  const method = methodByNonces(permit2Address);
  const one = judged(JSON.stringify({ approval }));
  expect(refuseByState(method, { payerAllowance: 0n }, one)).toBeUndefined();
  const refused = refuseByState(method, { payerAllowance: 0n, nextApproval: 4n }, one);
  expect(refused?.situation).toBe("approval_refused");
});

test("the nonces of a payment tell how it is paid", () => {
  expect(methodByNonces(permit2Address).transfer).toBe("permit2");
  expect([methodByNonces(undefined), methodByNonces(usdc.address)].map(({ transfer }) => transfer)).toEqual([
    "eip3009",
    "eip3009",
  ]);
});
