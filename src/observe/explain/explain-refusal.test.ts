import { describe, expect, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { authorizationOf } from "../../methods/exact-eip3009/payload.ts";
import { refusals } from "../../protocol/refusals.ts";
import { explainRefusal, type RefusedRequest } from "./explain-refusal.ts";

const request = examplePayment();
const contract = request.payment.payTo;
const { validBefore } = authorizationOf(request.payment);
const seconds = (time: bigint) => Number(time) * 1_000;

function timesIn(refused: Pick<RefusedRequest, "reason" | "message" | "at">, hasOwnClock = false) {
  const context = { contracts: { mainnet: contract, testnet: contract }, hasOwnClock: () => hasOwnClock };
  return explainRefusal({ ...refused, request }, context)
    .filter(({ mistake }) => ["expired", "not-valid-yet"].includes(mistake))
    .map(({ mistake, got }) => `${mistake}: ${got}`);
}

const late = seconds(validBefore + 60n);

describe("what is said of the times of a refused payment", () => {
  const early = seconds(validBefore - 60n);

  test("is by the chain's time, where the answer says it, whatever this machine's is", () => {
    const message = refusals.tooLate(validBefore, validBefore + 5n).message;
    // Settles of version 1 have one reason for all that is wrong with a payload.
    for (const reason of ["invalid_exact_evm_payload_authorization_valid_before", "invalid_payload"]) {
      expect(timesIn({ reason, message, at: seconds(validBefore + 4n) })).toEqual([
        `expired: ${validBefore}, 5 s ago`,
      ]);
      expect(timesIn({ reason, message, at: early })).toEqual([
        `expired: ${validBefore}, 5 s ago by the chain's clock, which is 65 s ahead of this machine's (a local chain's is put back by \`x402-kit reset\`)`,
      ]);
    }
    const tooEarly = refusals.tooEarly(0n, 0n).message;
    const reason = "invalid_exact_evm_payload_authorization_valid_after";
    expect(timesIn({ reason, message: tooEarly, at: late })).toEqual([
      `not-valid-yet: 0, 0 s ahead of the chain's clock, which is ${validBefore + 60n} s behind this machine's (a local chain's is put back by \`x402-kit reset\`)`,
    ]);
  });

  test("is nothing, where they were right when it was refused for another reason", () => {
    for (const reason of ["insufficient_funds", "invalid_transaction_state"]) {
      expect(timesIn({ reason, message: undefined, at: late })).toEqual([]);
    }
  });

  test("is by this machine's clock, where they were not looked at, unless the chains have another", () => {
    const refused = { reason: "invalid_exact_evm_payload_signature", message: undefined, at: late };
    expect(timesIn(refused)).toEqual([`expired: ${validBefore}, 60 s ago`]);
    expect(timesIn(refused, true)).toEqual([]);
  });
});

test.each([
  ["wallet", refusals.walletRefuses],
  ["token", refusals.tokenRefusesSignature],
])("a contract wallet's signature that the %s refuses is not compared with a key's", (_, refusal) => {
  const { reason, message } = refusal(request.payment.payer);
  const context = { contracts: { mainnet: contract, testnet: contract } };
  for (const said of [reason, "invalid_payload"]) {
    const refused = { reason: said, message, request, at: late };
    const [worst, ...others] = explainRefusal(refused, context);
    expect(others.map(({ mistake }) => mistake)).toEqual(["expired"]);
    expect(worst?.fix).toContain("the key of the wallet's owner");
    expect(worst?.fix).not.toContain("authorization.from");
    expect(worst?.more).toBe(`docs/errors.md#${said}`);
  }
});
