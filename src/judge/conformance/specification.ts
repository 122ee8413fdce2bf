import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { X402Version } from "../../protocol/requests.ts";

/** A sentence of the public x402 specification that a row of the table is based on. */
export type Rule = {
  /** Of the specification of the row's version of the protocol. */
  section: string;
  says: string;
};

type Rules = Rule | Readonly<Partial<Record<X402Version, Rule>>>;

const signature = verification(
  "Signature Validation: Verify the EIP-712 signature is valid and properly signed by the payer",
);
const balance = verification(
  "Balance Verification: Confirm the payer has sufficient token balance for the transfer",
);
const amountV2 = verification(
  "Amount Validation: Ensure the payment amount exactly matches the required amount",
);
const tooLittle: Rules = {
  1: verification("Amount Validation: Ensure the payment amount meets or exceeds the required amount"),
  2: amountV2,
};
const time = verification("Time Window Check: Verify the authorization is within its valid time range");
const parameters = verification(
  "Parameter Matching: Confirm authorization parameters match the original payment requirements",
);
const simulation = verification(
  "Transaction Simulation: Simulate the transferWithAuthorization transaction to ensure it would succeed",
);
const payload = rule("5.2.2", "PaymentPayload: fields, their types, and that they are required");
const requirements = rule("5.1.2", "PaymentRequirements: fields, their types, and that they are required");
const supported: Rules = {
  1: rule("7.3", "Returns the list of payment schemes and networks supported by the facilitator"),
  2: rule(
    "7.3",
    "Returns the list of payment schemes, networks, and extensions supported by the facilitator",
  ),
};
const version: Rules = {
  1: rule("5.2.2", "x402Version: Protocol version identifier (must be 1)"),
};
const request = rule(
  "7.1",
  "Verifies a payment authorization: the request has paymentPayload and paymentRequirements",
);

/** The shape of answers that strict public clients require. */
const answerRules: Readonly<Record<Operation, Rules>> = {
  verify: {
    // Version 1 does not define a schema for it.
    1: rule("7.1", "The response says isValid, true or false"),
    2: rule("5.4.2", "VerifyResponse: isValid is required, and a boolean"),
  },
  settle: rule(
    "5.3.2",
    "SettlementResponse: success, transaction (a hash, or an empty string) and network are required",
  ),
};

/**
 * The sentence that each row is based on, by situation. Other rows are choices of this kit: its limits, its API keys,
 * its short form of the requirements, its strictness about types, and its treatment of states that the specification
 * does not define.
 */
export const rules: Readonly<Record<string, Rules>> = {
  "success.funded": verification(
    "The facilitator performs the following verification steps; a payment that passes them is valid",
  ),
  "invalid_payload.malformed": payload,
  "invalid_payload.no_payment": request,
  "invalid_payload.not_an_object": request,
  "invalid_payload.not_accepted": payload,
  "invalid_payload.no_scheme": payload,
  "invalid_payload.no_network": payload,
  "invalid_payload.short_nonce": payload,
  "invalid_payload.negative_value": payload,
  "invalid_payload.huge_value": balance,
  "invalid_payload.bad_address": payload,
  "invalid_payload.signature_not_hexadecimal": signature,
  "invalid_x402_version.version_3": version,
  "invalid_x402_version.no_version": version,
  "unsupported_scheme.of_payment": supported,
  "unsupported_scheme.of_requirements": supported,
  "invalid_network.unknown": supported,
  "invalid_network.unknown_in_requirements": supported,
  "invalid_network.disabled": supported,
  "invalid_network.differ": parameters,
  "invalid_payment_requirements.malformed_requirements": requirements,
  "invalid_payment_requirements.no_requirements": request,
  "invalid_payment_requirements.no_amount": requirements,
  "invalid_payment_requirements.no_pay_to": requirements,
  "invalid_payment_requirements.asset": simulation,
  "invalid_payment_requirements.pay_to": parameters,
  "invalid_exact_evm_payload_recipient_mismatch.elsewhere": parameters,
  "invalid_exact_evm_payload_authorization_value.value_below": tooLittle,
  "invalid_exact_evm_payload_authorization_value.value_above": { 2: amountV2 },
  "invalid_exact_evm_payload_authorization_valid_after.not_yet_valid": time,
  "invalid_exact_evm_payload_authorization_valid_before.expired": time,
  "invalid_exact_evm_payload_signature.wrong_signer": signature,
  "invalid_exact_evm_payload_signature.changed_after_signing": signature,
  "invalid_exact_evm_payload_signature.other_chain": signature,
  "invalid_exact_evm_payload_signature.short_signature": signature,
  "invalid_exact_evm_payload_signature.empty_signature": signature,
  "invalid_exact_evm_payload_signature.high_s": simulation,
  "insufficient_funds.empty": balance,
  "insufficient_funds.beyond_all_balances": balance,
  "invalid_transaction_state.used_before": simulation,
  "bad_request.not_json": request,
  "bad_request.empty": request,
};

/** The sentence that a row is based on; undefined for a choice of this kit. */
export function ruleOf(row: Pick<ScenarioRow, "situation" | "x402Version">): Rule | undefined {
  return ofVersion(rules[row.situation], row.x402Version);
}

/** The sentence about the shape of an answer. */
export function answerRuleOf(row: Pick<ScenarioRow, "operation" | "x402Version">): Rule | undefined {
  return ofVersion(answerRules[row.operation], row.x402Version);
}

function ofVersion(rules: Rules | undefined, x402Version: X402Version): Rule | undefined {
  return rules === undefined || "says" in rules ? rules : rules[x402Version];
}

/** One of the steps of verifying. */
function verification(says: string): Rule {
  return rule("6.1.2", says);
}

function rule(section: string, says: string): Rule {
  return { section, says };
}
