import type { Hex } from "./hex.ts";

/**
 * The extension `payment-identifier` of the public protocol (version 2): the payer's client gives a purchase an
 * identifier and repeats it on a retry. Two different payments with the same identifier are refused.
 *
 * @see https://github.com/x402-foundation/x402/blob/main/specs/extensions/payment_identifier.md
 */
export const paymentIdentifierExtension = "payment-identifier";

/** A payment's identifier, and the resource it is for. */
export type PaymentIdentifier = {
  id: string;
  /** The resource named by the shop, otherwise the URL in the payment; empty if there is none. */
  resource: string;
  namedBy: "shop" | "buyer";
};

const format = /^[a-zA-Z0-9_-]{16,128}$/;

export const identifierProblems = {
  malformed: `extensions.${paymentIdentifierExtension} must have info, an object, with an id of 16 to 128 letters, digits, hyphens and underscores`,
  missing: `extensions.${paymentIdentifierExtension} says that an id is required, and has none in info`,
} as const;

/**
 * Reads the extension of a payment. Undefined if it has no id and requires none; a string says what is wrong. A
 * malformed identifier means no decision is made: if it were ignored, a purchase could be paid twice.
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
 * The payment that an identifier is bound to: the signed message and the resource. A resource named by the shop
 * differs from the same text written by the buyer. Otherwise a payment for something sold once, settled without the
 * header, would also buy a resource on a route that repeats successes.
 *
 * @param digest the digest that the payment's signature is over
 */
export function identifierBinding(digest: Hex, { resource, namedBy }: PaymentIdentifier): string {
  return namedBy === "shop" ? `shop ${digest} ${resource}` : `${digest} ${resource}`;
}

/** Adds the resource that the shop names in the header `Idempotency-Key`, if it names one. */
export function withShopsResource<Request extends { identifier?: PaymentIdentifier }>(
  payment: Request,
  header: unknown,
): Request {
  const resource = readShopsResource(header)?.resource;
  const { identifier } = payment;
  if (resource === undefined || identifier === undefined) return payment;
  return { ...payment, identifier: { id: identifier.id, resource, namedBy: "shop" } };
}

/** The resource that a shop sells, named in the header `Idempotency-Key` instead of a key. */
export type ShopsResource = {
  /** Undefined if the header names only the extension; then no success is repeated. */
  resource: string | undefined;
};

/** How a shop names what it sells; used here and in OpenAPI. */
export const shopsResourcePattern = `^${paymentIdentifierExtension}; ?resource="[\\x21\\x23-\\x7e]{1,2048}"$`;

const shopsResource = new RegExp(shopsResourcePattern);

/**
 * Reads `Idempotency-Key: payment-identifier; resource="/report"`. With it, the success of a payment is repeated for
 * the identifier in the payment, for that resource only. The shop must name the resource: the URL in a payment is
 * written by the buyer, so one payment could buy every resource of the same price. Undefined for every other key.
 */
export function readShopsResource(header: unknown): ShopsResource | undefined {
  if (header === paymentIdentifierExtension) return { resource: undefined };
  if (typeof header !== "string" || !shopsResource.test(header)) return undefined;
  return { resource: header.slice(header.indexOf('"') + 1, -1) };
}

function property(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
