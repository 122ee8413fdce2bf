/**
 * The codes of errors, by which programs tell them apart: a code stays the same when a message changes. `exit` is the
 * exit code of a command that ends with the error. See the table in docs/guides/agents.md.
 */
export const errorCodes = {
  failed: { exit: 1, means: "it could not be done; the message says why" },
  configuration: { exit: 2, means: "a command line, a variable or an option is wrong or missing" },
  unreachable: { exit: 3, means: "nothing answers at an address" },
  "not-found": {
    exit: 4,
    means: "there is no such payment, settlement, organization, key, fault, network or file",
  },
  "port-in-use": { exit: 1, means: "another program listens at the port" },
  "unexpected-answer": { exit: 1, means: "something else answers at the address" },
  unauthorized: { exit: 1, means: "a token is missing or wrong" },
  forbidden: { exit: 1, means: "the API key does not allow it, or its organization has no recipient there" },
  "gas-budget-used-up": { exit: 1, means: "the organization's gas budget of the day is used up" },
  "payment-identifier-reused": { exit: 1, means: "a payment identifier came with another payment before" },
  "idempotency-key-reused": { exit: 1, means: "an Idempotency-Key came with another body before" },
  undetermined: {
    exit: 1,
    means: "it is not known whether it was done, or it cannot be done now; try the same again",
  },
  "operator-unable": { exit: 1, means: "an operator cannot settle: it has no gas money, or no role" },
  "rpc-refused": { exit: 1, means: "a node refused a call" },
  closed: { exit: 1, means: "the harness, pool, node or database was closed before" },
  unforeseen: { exit: 1, means: "a bug; the JSON has the stack" },
} as const;

export type ErrorCode = keyof typeof errorCodes;
