import type { Hex } from "./hex.ts";

/**
 * The extension `payment-identifier` of the public protocol (version 2): the payer's client gives a purchase an identifier,
 * and repeats it when it asks again. Two payments with one identifier are refused.
 *
 * @see https://github.com/x402-foundation/x402/blob/main/specs/extensions/payment_identifier.md
 */
export const paymentIdentifierExtension = "payment-identifier";

/** A payment's identifier, and what is paid for. */
export type PaymentIdentifier = {
  id: string;
  /** The resource that is paid for: as the shop names it, or else the URL that the payment has; empty where it has none. */
  resource: string;
  namedBy: "shop" | "buyer";
};

const format = /^[a-zA-Z0-9_-]{16,128}$/;

export const identifierProblems = {
  malformed: `extensions.${paymentIdentifierExtension} must have info, an object, with an id of 16 to 128 letters, digits, hyphens and underscores`,
  missing: `extensions.${paymentIdentifierExtension} says that an id is required, and has none in info`,
} as const;

/**
 * Reads the extension of a payment; undefined where it has no id and needs none. A text says what is wrong with it. There is
 * no verdict then: if a malformed identifier were ignored, a purchase could be paid twice.
 */
export function readPaymentIdentifier(
  extension: unknown,
  resource: unknown,
): PaymentIdentifier | string | undefined {
  if (extension === undefined) return undefined;
  const info = property(extension, "info");
  if (typeof info !== "object" || info === null) return identifierProblems.malformed;
  const id = property(info, "id");
  if (id === undefined) return property(info, "required") === true ? identifierProblems.missing : undefined;
  if (typeof id !== "string" || !format.test(id)) return identifierProblems.malformed;
  return { id, resource: typeof resource === "string" ? resource : "", namedBy: "buyer" };
}

/**
 * The payment that an identifier is bound to: the signed message and the resource. The resource that a shop names is
 * told from the same text of a buyer: a payment for something that is sold once, without the header, would else buy what another route repeats.
 *
 * @param digest what the payment's signature is over
 */
export function identifierBinding(digest: Hex, { resource, namedBy }: PaymentIdentifier): string {
  return namedBy === "shop" ? `shop ${digest} ${resource}` : `${digest} ${resource}`;
}

/** A payment as its shop has it: with the resource that the header `Idempotency-Key` names, if it names one. */
export function withShopsResource<Request extends { identifier?: PaymentIdentifier }>(
  payment: Request,
  header: unknown,
): Request {
  const resource = readShopsResource(header)?.resource;
  const { identifier } = payment;
  if (resource === undefined || identifier === undefined) return payment;
  return { ...payment, identifier: { id: identifier.id, resource, namedBy: "shop" } };
}

/** The resource that a shop sells, as it names it in the header `Idempotency-Key` in place of a key of its own. */
export type ShopsResource = {
  /** Undefined where it names the extension alone: then no success is repeated. */
  resource: string | undefined;
};

/** How a shop says what it sells; here and in OpenAPI. */
export const shopsResourcePattern = `^${paymentIdentifierExtension}; ?resource="[\\x21\\x23-\\x7e]{1,2048}"$`;

const shopsResource = new RegExp(shopsResourcePattern);

/**
 * Reads `Idempotency-Key: payment-identifier; resource="/report"`, which has the success of a payment repeated to the
 * identifier that it carries, for that resource alone. The shop must name it: the URL in a payment is written by the buyer, and
 * one payment would buy every resource of its price. Undefined for every other key.
 */
export function readShopsResource(header: unknown): ShopsResource | undefined {
  if (header === paymentIdentifierExtension) return { resource: undefined };
  if (typeof header !== "string" || !shopsResource.test(header)) return undefined;
  return { resource: header.slice(header.indexOf('"') + 1, -1) };
}

function property(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
