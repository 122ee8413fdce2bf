import { readAnyNumber } from "../../methods/explain-members.ts";
import { halfOfPayload } from "../../methods/explained.ts";
import { type Address, type Hex, isAddress } from "../../protocol/hex.ts";
import { findJsonProblem } from "../../protocol/json-problem.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import type { Network, NetworkRegistry } from "../../protocol/networks.ts";
import { isRecord } from "../../protocol/wire-values.ts";
import { membersOf, parseJson } from "../../util/json.ts";
import { explainClientError } from "./explain-client-error.ts";

/** The text to explain, as far as it could be read. */
export type Input =
  /** `x402Version`: the optional one beside the payment. `whole`: the body as received. */
  | {
      kind: "request";
      payload: unknown;
      requirements: unknown;
      x402Version?: unknown;
      whole: Record<string, unknown>;
    }
  | { kind: "payment"; payload: unknown }
  | { kind: "challenge"; accepts: readonly unknown[]; x402Version: unknown }
  | { kind: "answer"; answer: object };

export type InputReading = { input: Input | undefined; findings: Finding[] };

/**
 * Detects the kind of a text: a verify or settle body, a payment header, a 402 challenge (its body or its PAYMENT-REQUIRED
 * header), or a facilitator's answer. Accepts JSON, JSON in base64, and an HTTP response that contains either. Never throws.
 */
export function readInput(text: string): InputReading {
  const findings: Finding[] = [];
  // A pasted header may include its name.
  const bare = withoutHttp(text.trim()).replace(/^[A-Za-z-]+:\s+/, "");
  let value = parseJson(bare);
  if (value === undefined) {
    const once = decodeBase64(bare);
    value = once === undefined ? undefined : parseJson(once);
    const twice = value === undefined && once !== undefined ? decodeBase64(once) : undefined;
    if (twice !== undefined) {
      value = parseJson(twice);
      if (value !== undefined) findings.push(finding("encoded-twice", ""));
    }
  }
  if (value === undefined) return { input: undefined, findings: [explainClientError(text) ?? notJson(bare)] };
  if (typeof value === "string") {
    // A header in quotes, or a body that was JSON-encoded twice.
    const inner = parseJson(value);
    if (isRecord(inner)) findings.push(finding("text-of-json", "", quote(bare)));
    value = inner ?? parseJson(decodeBase64(value) ?? "");
  }
  const input = classify(value, findings);
  if (input === undefined) findings.push(finding("unknown-shape", "", quote(bare)));
  return { input, findings };
}

/** From a response printed by `curl -i`, takes the payment header, otherwise the body. Returns any other text unchanged. */
function withoutHttp(text: string): string {
  if (!/^HTTP\/\d/.test(text)) return text;
  const [head = "", ...body] = text.split(/\r?\n\r?\n/);
  const named = /^(?:payment-required|payment-response|x-payment-response):[^\S\r\n]*(\S+)/im.exec(head);
  return named?.[1] ?? body.join("\n\n").trim();
}

/** Reports where a text that starts like JSON stops being JSON. */
function notJson(text: string): Finding {
  const problem = /^[{[]/.test(text) ? findJsonProblem(text) : undefined;
  if (problem === undefined) return finding("not-json", "", quote(text));
  const { line, column, found } = problem;
  return finding("not-json", `line ${line}, column ${column}`, { got: found });
}

/** A body with one of these is for a facilitator: current names, their Python spelling, an older name. */
const requestMembers = [
  "paymentPayload",
  "paymentRequirements",
  "payment_payload",
  "payment_requirements",
  "paymentHeader",
];

function classify(value: unknown, findings: Finding[]): Input | undefined {
  if (!isRecord(value)) return undefined;
  if (requestMembers.some((name) => name in value)) {
    let payload = value.paymentPayload;
    if (typeof payload === "string") {
      findings.push(finding("not-decoded", "paymentPayload", { expected: "an object" }));
      const once = decodeBase64(payload) ?? "";
      const twice = parseJson(decodeBase64(once) ?? "");
      if (twice !== undefined) findings.push(finding("encoded-twice", "paymentPayload"));
      payload = parseJson(payload) ?? parseJson(once) ?? twice;
    }
    const { paymentRequirements: requirements, x402Version } = value;
    return { kind: "request", payload, requirements, x402Version, whole: value };
  }
  if (Array.isArray(value.accepts)) {
    return { kind: "challenge", accepts: value.accepts, x402Version: value.x402Version };
  }
  if ("payload" in value) return { kind: "payment", payload: value };
  const isProblem =
    typeof value.type === "string" && value.type.startsWith("urn:x402-facilitator-kit:problem:");
  if ("success" in value || "isValid" in value || isProblem) return { kind: "answer", answer: value };
  return undefined;
}

/** Decodes base64 or base64url; undefined if the text is neither. */
function decodeBase64(text: string): string | undefined {
  const bare = text.trim().replace(/^"|"$/g, "");
  if (!/^[A-Za-z0-9+/_-]{8,}={0,2}$/.test(bare)) return undefined;
  return Buffer.from(bare, "base64").toString("utf8");
}

function quote(text: string): { got: string } {
  return { got: text.length > 60 ? `${text.slice(0, 60)}…` : text };
}

/** The facts about a payment that a text names, even if the payment is malformed. */
export type PaymentNames = {
  /** Found by its name in either version; undefined if the text names no known network. */
  network: Network | undefined;
  payer: Address | undefined;
  /** In the token's smallest unit; undefined if it cannot be read. */
  value: bigint | undefined;
  /** The token of the requirements, then the one in a version 2 payment's `accepted`. */
  assets: readonly Address[];
};

/** The identity of a payment, as far as a text names it. */
export type NamedPayment = {
  network: Network;
  payer: Address;
  /** As stored in the ledger. */
  nonce: Hex;
  /** The contract that keeps the nonce; undefined if the token does. */
  nonceSpace: Address | undefined;
  /** In the token's smallest unit; undefined if it cannot be read. */
  value: bigint | undefined;
  /** The tokens it names, otherwise the network's USDC. */
  assets: readonly [Address, ...Address[]];
};

/** Reads the facts that a request body or payment header names; undefined for anything else. */
export function namesIn(input: Input | undefined, networks: NetworkRegistry): PaymentNames | undefined {
  if (input === undefined || !("payload" in input)) return undefined;
  const payload = membersOf(input.payload);
  const accepted = membersOf(payload.accepted);
  const name = accepted.network ?? payload.network;
  const { payer, value } = signedIn(input);
  const required = input.kind === "request" ? membersOf(input.requirements).asset : undefined;
  return {
    network: typeof name === "string" ? (networks.find(name, 1) ?? networks.find(name, 2)) : undefined,
    payer: isAddress(payer) ? payer : undefined,
    value: readAnyNumber(value),
    assets: [required, accepted.asset].filter(isAddress),
  };
}

/** Reads the identity of the payment in a request body or payment header; undefined if it cannot be read. */
export function namedPayment(input: Input | undefined, networks: NetworkRegistry): NamedPayment | undefined {
  const { network, payer, value, assets = [] } = namesIn(input, networks) ?? {};
  const { nonce, nonceSpace } = signedIn(input);
  if (network === undefined || payer === undefined || nonce === undefined) return undefined;
  const [first = network.usdc.address, ...others] = assets;
  return { network, payer, nonce, nonceSpace, value, assets: [first, ...others] };
}

/** Reads the payer, value and nonce from the signed part of a payment. */
function signedIn(input: Input | undefined) {
  const payload = input !== undefined && "payload" in input ? membersOf(input.payload).payload : undefined;
  const { member, nameOf } = halfOfPayload(payload);
  const members = membersOf(payload);
  return nameOf(membersOf(members[member]), members);
}
