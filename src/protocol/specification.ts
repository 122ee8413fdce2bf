import type { Operation } from "./problems.ts";

/** A sentence of the public x402 specification. */
export type Rule = {
  /** The section in the specification of the payment's protocol version. */
  section: string;
  says: string;
};

/** A rule shared by both versions, or one for each version that has it. */
export type Rules = Rule | Readonly<Partial<Record<1 | 2, Rule>>>;

/** The sentences that situations and scenarios are based on. */
export const rules = {
  steps: verification(
    "The facilitator performs the following verification steps; a payment that passes them is valid",
  ),
  signature: verification(
    "Signature Validation: Verify the EIP-712 signature is valid and properly signed by the payer",
  ),
  amount: {
    1: verification("Amount Validation: Ensure the payment amount meets or exceeds the required amount"),
    2: verification("Amount Validation: Ensure the payment amount exactly matches the required amount"),
  },
  balance: verification(
    "Balance Verification: Confirm the payer has sufficient token balance for the transfer",
  ),
  time: verification("Time Window Check: Verify the authorization is within its valid time range"),
  parameters: verification(
    "Parameter Matching: Confirm authorization parameters match the original payment requirements",
  ),
  simulation: verification(
    "Transaction Simulation: Simulate the transferWithAuthorization transaction to ensure it would succeed",
  ),
  payload: rule("5.2.2", "PaymentPayload: fields, their types, and that they are required"),
  requirements: rule("5.1.2", "PaymentRequirements: fields, their types, and that they are required"),
  supported: {
    1: rule("7.3", "Returns the list of payment schemes and networks supported by the facilitator"),
    2: rule(
      "7.3",
      "Returns the list of payment schemes, networks, and extensions supported by the facilitator",
    ),
  },
  version: { 1: rule("5.2.2", "x402Version: Protocol version identifier (must be 1)") },
  request: rule(
    "7.1",
    "Verifies a payment authorization: the request has paymentPayload and paymentRequirements",
  ),
  verify: rule("7.1", "Verifies a payment authorization without executing the transaction on the blockchain"),
  settle: rule("7.2", "Executes a verified payment by broadcasting the transaction to the blockchain"),
} as const satisfies Record<string, Rules>;

/** The shape of responses that strict public clients require. */
export const answerRules: Readonly<Record<Operation, Rules>> = {
  verify: {
    // Version 1 defines no schema for it.
    1: rule("7.1", "The response says isValid, true or false"),
    2: rule("5.4.2", "VerifyResponse: isValid is required, and a boolean"),
  },
  settle: rule(
    "5.3.2",
    "SettlementResponse: success, transaction (a hash, or an empty string) and network are required",
  ),
};

/** The members that describe the payment in a success. */
export const namingRules: Readonly<Record<Operation, Rules>> = {
  verify: { 2: rule("5.4.2", "VerifyResponse: payer is the address of the payer's wallet") },
  settle: rule(
    "5.3.2",
    "SettlementResponse: payer is the address of the payer's wallet, and network the one it was settled on",
  ),
};

/** The rule for a protocol version; undefined if it has none. */
export function ofVersion(rules: Rules | undefined, x402Version: 1 | 2): Rule | undefined {
  return rules === undefined || "says" in rules ? rules : rules[x402Version];
}

/** A step of the verification. */
function verification(says: string): Rule {
  return rule("6.1.2", says);
}

function rule(section: string, says: string): Rule {
  return { section, says };
}
