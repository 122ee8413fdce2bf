import { parsePaymentRequest } from "../../methods/methods.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import type { Network, NetworkRegistry } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { showValue } from "../../util/show-value.ts";
import { isRecord } from "./read-input.ts";

/** Both halves of a request. `at`: what the requirements are called. */
type Halves = { payload: unknown; requirements: unknown; at: string };

/**
 * What the service itself says of a request that it cannot read. For requests in which nothing else was found: what it
 * refuses must never be said to be right.
 */
export function explainUnread({ payload, requirements, at }: Halves, networks: NetworkRegistry): Finding[] {
  const body = { paymentPayload: payload, paymentRequirements: requirements };
  const parsed = parsePaymentRequest(body, networks);
  if (parsed.ok) {
    const { identifierProblem } = parsed;
    return identifierProblem === undefined
      ? []
      : [finding("missing-member", "paymentPayload.extensions", { expected: identifierProblem })];
  }
  const { message, at: path = "" } = parsed.invalid;
  const problem = message.slice(path.length);
  const found = path
    .split(".")
    .reduce<unknown>((value, name) => (isRecord(value) ? value[name] : value), body);
  return [
    finding("missing-member", path.replace(/^paymentRequirements/, at), {
      ...(path !== "" && { got: showValue(found) }),
      expected: problem.replace(/^:? (?:must be )?/, ""),
    }),
  ];
}

/** The requirements that a payment header of version 1, which has none, can be meant for. */
export function requirementsFor(payload: Record<string, unknown>, network: Network | undefined): unknown {
  const { authorization } = isRecord(payload.payload) ? payload.payload : {};
  const { value, to } = isRecord(authorization) ? authorization : {};
  const asset = network?.usdc.address;
  return { scheme: "exact", network: payload.network, maxAmountRequired: value, asset, payTo: to };
}

/** A payment that a payer could make for an offer of a challenge. */
export function paymentFor(offer: Record<string, unknown>, version: X402Version): unknown {
  const account = `0x${"01".repeat(20)}`;
  const authorization = {
    ...{ from: account, to: account, value: "1", validAfter: "0", validBefore: "1" },
    nonce: `0x${"01".repeat(32)}`,
  };
  const payload = { signature: "0x", authorization };
  return version === 1
    ? { x402Version: 1, scheme: "exact", network: offer.network, payload }
    : { x402Version: 2, accepted: offer, payload };
}
