import { describe, expect, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { authorizationOf } from "../../methods/exact-eip3009/eip3009-method.ts";
import { advice, refusals } from "../../protocol/refusals.ts";
import { membersOf } from "../../util/json.ts";
import { explainRefusal, type OwnClockSince, type RefusedRequest, requestBodyOf } from "./explanations.ts";

const request = examplePayment();
const contract = request.payment.payTo;
const { validBefore } = authorizationOf(request.payment);
const seconds = (time: bigint) => Number(time) * 1_000;

function explainTimes(refused: Omit<RefusedRequest, "request">, since?: OwnClockSince) {
  const context = { contracts: { mainnet: contract, testnet: contract }, ownClockSince: () => since };
  return explainRefusal({ ...refused, request }, context).filter(({ mistake }) =>
    ["expired", "not-valid-yet"].includes(mistake),
  );
}

function timesIn(...given: Parameters<typeof explainTimes>) {
  return explainTimes(...given).map(({ mistake, got }) => `${mistake}: ${got}`);
}

const late = seconds(validBefore + 60n);

describe("what is said of the times of a refused payment", () => {
  const early = seconds(validBefore - 60n);

  test("is by the chain's time, where the answer says it, whatever this machine's is", () => {
    const tooLate = refusals.tooLate(
      { window: { first: 1n, last: validBefore - 1n }, words: request.words },
      validBefore + 5n,
    );
    // Settles of version 1 have one reason for all that is wrong with a payload.
    for (const reason of ["invalid_exact_evm_payload_authorization_valid_before", "invalid_payload"]) {
      expect(timesIn({ ...tooLate, reason, at: seconds(validBefore + 4n) })).toEqual([
        `expired: ${validBefore} (2033-05-18 03:33:20 UTC, 5 s ago)`,
      ]);
      expect(timesIn({ ...tooLate, reason, at: early })).toEqual([
        `expired: ${validBefore} (2033-05-18 03:33:20 UTC, 5 s ago) by the chain's clock, which is 65 s ahead of this machine's`,
      ]);
    }
    expect(
      timesIn({ ...refusals.tooEarly({ first: 1n, last: validBefore }, 0n, request.words), at: late }),
    ).toEqual([
      `not-valid-yet: 0 (1970-01-01 00:00:00 UTC, now) by the chain's clock, which is ${validBefore + 60n} s behind this machine's`,
    ]);
  });

  test("is first what to do about the chain's clock, where that is far from this machine's", () => {
    const tooLate = refusals.tooLate(
      { window: { first: 1n, last: validBefore - 1n }, words: request.words },
      validBefore + 5n,
    );
    const fixes = (at: number, since?: OwnClockSince) =>
      explainTimes({ ...tooLate, at }, since).map(({ fix }) => fix);
    const sign = advice.expired;
    expect(fixes(early, "moved")).toEqual([
      `The local chain's clock is 65 s ahead of this machine's: \`x402-kit reset\` puts it back, with all else there. ${sign}`,
    ]);
    for (const since of ["started", undefined] as const) {
      expect(fixes(early, since)).toEqual([
        `Go by the chain's clock, which is 65 s ahead of this machine's. ${sign}`,
      ]);
    }
    expect(fixes(late - 55_000, "moved")).toEqual([sign]);
  });

  test("is nothing, where they were right when it was refused for another reason", () => {
    for (const reason of ["insufficient_funds", "invalid_transaction_state"]) {
      expect(timesIn({ reason, message: undefined, at: late })).toEqual([]);
    }
  });

  test("is by this machine's clock, where they were not looked at, unless the chains have another", () => {
    const refused = { reason: "invalid_exact_evm_payload_signature", message: undefined, at: late };
    expect(timesIn(refused)).toEqual([`expired: ${validBefore} (2033-05-18 03:33:20 UTC, 60 s ago)`]);
    for (const since of ["started", "moved"] as const) expect(timesIn(refused, since)).toEqual([]);
  });
});

test("a refusal is not put down to extra, which only other facilitators need", () => {
  const contracts = { mainnet: contract, testnet: contract };
  const { paymentRequirements, ...rest } = requestBodyOf(request, { contracts });
  const body = JSON.stringify({
    ...rest,
    paymentRequirements: { ...membersOf(paymentRequirements), extra: {} },
  });
  const refused = { reason: "insufficient_funds", message: undefined, request, at: late };
  expect(explainRefusal({ ...refused, body }, { contracts }).map(({ mistake }) => mistake)).toEqual([
    "insufficient_funds",
    "extra-needed-elsewhere",
  ]);
  expect(explainRefusal(refused, { contracts }).map(({ mistake }) => mistake)).toEqual([
    "insufficient_funds",
  ]);
});

test.each([
  ["wallet", refusals.walletRefuses],
  ["token", refusals.tokenRefusesSignature],
])("a contract wallet's signature that the %s refuses is not compared with a key's", (_, refusal) => {
  const refused = refusal(request.payment.payer, request.words);
  const context = { contracts: { mainnet: contract, testnet: contract } };
  for (const reason of [refused.reason, "invalid_payload"]) {
    const [worst, ...others] = explainRefusal({ ...refused, reason, request, at: late }, context);
    expect(others.map(({ mistake }) => mistake)).toEqual(["expired"]);
    expect(worst?.fix).toContain("the key of the wallet's owner");
    expect(worst?.fix).not.toContain("authorization.from");
    expect(worst?.more).toBe(`docs/errors.md#${reason}`);
  }
});

const hash = `0x${"ab".repeat(32)}` as const;

test.each([
  [refusals.payerBlacklisted(), "another account"],
  [refusals.contractBlacklisted(), "those who run the facilitator"],
  [refusals.recipientBlacklisted(contract), "org set-recipient"],
  [refusals.assetPaused(), "later"],
  [refusals.beingSettled(), "Do not sign again"],
  [refusals.settledBefore(hash), "if that was done, serve nothing"],
  [refusals.failed(hash, "reverted"), "only then sign again"],
  [refusals.failedForGood(hash, "reverted"), "nobody can make it any more"],
  [refusals.usedHere(), "serve nothing if that was done"],
  [refusals.usedOnChain(), "before the payer signs again"],
  [refusals.payerHasCode(contract), "from a plain account"],
])("“$message” is explained by its own cause, not by all that share its reason", (refusal, fix) => {
  const context = { contracts: { mainnet: contract, testnet: contract } };
  const [explanation] = explainRefusal({ ...refusal, request: undefined, at: 0 }, context);
  expect(explanation?.title).toBe(refusal.fact);
  expect(explanation?.fix).toContain(fix);
  expect(explanation?.why).not.toContain("a party is blacklisted");
  expect(explanation?.why).not.toContain("is not the payer's");
});
