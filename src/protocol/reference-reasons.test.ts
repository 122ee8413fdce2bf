import { expect, test } from "vitest";
import { eip3009Words } from "../methods/exact-eip3009/eip3009-method.ts";
import { methods } from "../methods/methods.ts";
import {
  invalid,
  invalidReasons,
  type RefusedSituation,
  reasons,
  referenceReasons,
  withReasonOfMethod,
} from "./catalogue.ts";
import { adviceOnReason } from "./catalogue-texts.ts";
import { referenceReason, specReason } from "./reference-reasons.ts";
import { refuseUsed } from "./refusals.ts";
import type { Envelope } from "./requests.ts";
import type { PaymentWords } from "./signed-payment.ts";

const envelopes = methods.flatMap(({ words, versions }) =>
  versions.map((x402Version) => ({ x402Version, payer: undefined, network: "base", words })),
);
const situations = invalidReasons.flatMap(
  (reason) => Object.keys(reasons[reason].situations) as RefusedSituation[],
);

/** As the parser makes it, of which naming reads the words alone. */
const nameOf = (
  situation: RefusedSituation,
  operation: "verify" | "settle",
  envelope: Envelope & { words: PaymentWords },
) => {
  const refusal = withReasonOfMethod(invalid(situation, "because"), envelope);
  return { refusal, name: referenceReason(refusal, operation, envelope) };
};

test("each of its names but that of a missing domain is given somewhere, and stands for the reason there", () => {
  const given = new Set<string>();
  for (const envelope of envelopes) {
    for (const situation of situations) {
      for (const operation of ["verify", "settle"] as const) {
        const { refusal, name } = nameOf(situation, operation, envelope);
        given.add(name);
        // By Permit2 its name for what would fail is a reason of the specification for the same.
        if (name !== "permit2_simulation_failed" && refusal.reason !== "permit2_simulation_failed")
          expect(specReason(name)).toBe(refusal.reason);
      }
    }
  }
  const unseen = referenceReasons.filter((name) => !given.has(name));
  expect(unseen).toEqual(["invalid_exact_evm_missing_eip712_domain"]);
});

test.each(referenceReasons)("%s is explained", (name) => {
  expect(adviceOnReason(name, undefined)).toEqual(adviceOnReason(specReason(name), undefined));
  expect(adviceOnReason(name, undefined)?.fix).not.toBe("");
});

test("a payment that was used is refused by its own fault first, as there", () => {
  const damaged = refuseUsed(invalid("signature_wrong", "because"), "settled_before");
  const envelope = { x402Version: 2 as const, payer: undefined, network: "base", words: eip3009Words };
  expect(referenceReason(damaged, "settle", envelope)).toBe("invalid_exact_evm_signature");
  expect(referenceReason(invalid("settled_before", "because"), "settle", envelope)).toBe(
    "invalid_exact_evm_nonce_already_used",
  );
});
