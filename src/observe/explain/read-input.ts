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
  /** `x402Version`: the one beside the payment, which may be left out. `whole`: the body as it came. */
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
 * Detects the kind of a text: a body of verify or settle, a payment header, a 402 challenge (its body or the header
 * PAYMENT-REQUIRED), or a facilitator's answer; as JSON, as base64 of it, or as an HTTP answer with it. Never throws.
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
    // A header in quotes, or a body that was written as JSON twice.
    const inner = parseJson(value);
    if (isRecord(inner)) findings.push(finding("text-of-json", "", quote(bare)));
    value = inner ?? parseJson(decodeBase64(value) ?? "");
  }
  const input = classify(value, findings);
  if (input === undefined) findings.push(finding("unknown-shape", "", quote(bare)));
  return { input, findings };
}

/** The header of a payment, or else the body, of an answer as `curl -i` prints it; any other text as it is. */
function withoutHttp(text: string): string {
  if (!/^HTTP\/\d/.test(text)) return text;
  const [head = "", ...body] = text.split(/\r?\n\r?\n/);
  const named = /^(?:payment-required|payment-response|x-payment-response):[^\S\r\n]*(\S+)/im.exec(head);
  return named?.[1] ?? body.join("\n\n").trim();
}

/** Where a text stops being JSON, if that is what it was to be. */
function notJson(text: string): Finding {
  const problem = /^[{[]/.test(text) ? findJsonProblem(text) : undefined;
  if (problem === undefined) return finding("not-json", "", quote(text));
  const { line, column, found } = problem;
  return finding("not-json", `line ${line}, column ${column}`, { got: found });
}

/** A body with one of them is meant for a facilitator: by its names, those that Python writes, or that of the first version. */
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

/** Decodes base64 or base64url; undefined if it is neither. */
function decodeBase64(text: string): string | undefined {
  const bare = text.trim().replace(/^"|"$/g, "");
  if (!/^[A-Za-z0-9+/_-]{8,}={0,2}$/.test(bare)) return undefined;
  return Buffer.from(bare, "base64").toString("utf8");
}

function quote(text: string): { got: string } {
  return { got: text.length > 60 ? `${text.slice(0, 60)}…` : text };
}

/** The members of a payment that a text names, whether or not it is one. */
export type PaymentNames = {
  /** In either version's words; undefined where it names none that is known. */
  network: Network | undefined;
  payer: Address | undefined;
  /** In the token's smallest unit; undefined where it cannot be read. */
  value: bigint | undefined;
  /** Of the requirements, then of what a payment of version 2 accepts. */
  assets: readonly Address[];
};

/** The identity of a payment, as far as a text names it. */
export type NamedPayment = {
  network: Network;
  payer: Address;
  /** As the ledger has it. */
  nonce: Hex;
  /** The contract that keeps the nonce; undefined if the token does. */
  nonceSpace: Address | undefined;
  /** In the token's smallest unit; undefined where it cannot be read. */
  value: bigint | undefined;
  /** The token that it names, and else the network's own. */
  assets: readonly [Address, ...Address[]];
};

/** Reads the names in a request body or a payment header; undefined for anything else. */
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

/** Reads the identity of the payment in a request body or a payment header; undefined where it cannot be read. */
export function namedPayment(input: Input | undefined, networks: NetworkRegistry): NamedPayment | undefined {
  const { network, payer, value, assets = [] } = namesIn(input, networks) ?? {};
  const { nonce, nonceSpace } = signedIn(input);
  if (network === undefined || payer === undefined || nonce === undefined) return undefined;
  const [first = network.usdc.address, ...others] = assets;
  return { network, payer, nonce, nonceSpace, value, assets: [first, ...others] };
}

/** The names of a payment in what was signed. */
function signedIn(input: Input | undefined) {
  const payload = input !== undefined && "payload" in input ? membersOf(input.payload).payload : undefined;
  const { member, nameOf } = halfOfPayload(payload);
  const members = membersOf(payload);
  return nameOf(membersOf(members[member]), members);
}
