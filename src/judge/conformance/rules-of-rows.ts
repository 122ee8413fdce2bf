import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import type { FixtureAnswer } from "../../fixtures/engine/answer.ts";
import { isSituation } from "../../protocol/catalogue.ts";
import { situationTexts } from "../../protocol/catalogue-texts.ts";
import { ofVersion, type Rule, type Rules, rules } from "../../protocol/specification.ts";
import { memberOf } from "./compare.ts";

/** Overrides for the sentence that a row is based on, otherwise that of its situation. Null for choices of this kit. */
export const rulesOfRows: Readonly<Record<string, Rules | null>> = {
  "success.funded": rules.steps,
  "invalid_payload.no_payment": rules.request,
  "invalid_payload.not_an_object": rules.request,
  "invalid_payload.number_for_value": null,
  "invalid_payload.huge_value": rules.balance,
  "invalid_payload.signature_not_hexadecimal": rules.signature,
  "invalid_payload.signature_too_long": null,
  "invalid_payload.nested_deeply": null,
  "invalid_payment_requirements.no_requirements": rules.request,
  "invalid_payment_requirements.two_amounts": null,
  "invalid_payment_requirements.two_recipients": null,
  // Version 1 accepts more than the required amount.
  "invalid_exact_evm_payload_authorization_value.value_above": null,
  "invalid_exact_evm_payload_authorization_value.price_raised_afterwards": null,
  "invalid_exact_evm_payload_authorization_value_mismatch.price_raised_afterwards": null,
  "invalid_exact_evm_payload_authorization_valid_before.expires_too_soon": null,
  "invalid_exact_evm_payload_signature.high_s": rules.simulation,
  "bad_request.not_json": rules.request,
  "bad_request.empty": rules.request,
};

/**
 * The sentence in the specification that a row is based on. Undefined for choices of this kit: its limits, API keys,
 * short form of the requirements, strictness about types, and handling of states that the specification leaves
 * undefined.
 *
 * @param expected the expected response, which names the row's situation in the catalogue
 */
export function ruleOf(
  { situation, x402Version }: Pick<ScenarioRow, "situation" | "x402Version">,
  expected: FixtureAnswer,
): Rule | undefined {
  const ofRow = rulesOfRows[situation];
  if (ofRow === null) return undefined;
  const named = memberOf(expected, "situation");
  const ofSituation = isSituation(named) ? situationTexts[named].rule : undefined;
  return ofVersion(ofRow ?? ofSituation, x402Version);
}
