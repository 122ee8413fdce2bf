import { z } from "zod";
import { createBoundedMap } from "../../util/cache.ts";
import type { MethodTerms } from "../checks.ts";
import { address } from "../primitives.ts";
import type { PayloadReader, PaymentRequest } from "../requests.ts";
import type { DiscoveredResource } from "./discovery-schemas.ts";

/** A resource as one payment describes it, and its key. */
export type SeenResource = { key: string; resource: Omit<DiscoveredResource, "lastUpdated"> };

const longestUrl = 2_048;
const longestDescription = 500;

const described = z.looseObject({
  description: z.string().optional().catch(undefined),
  mimeType: z
    .string()
    .max(100)
    .regex(/^[\x20-\x7e]+$/)
    .optional()
    .catch(undefined),
});

const bodySchema = z.object({
  paymentPayload: z.looseObject({
    resource: described
      .extend({ url: z.string(), serviceName: z.unknown(), tags: z.unknown(), iconUrl: z.unknown() })
      .partial({ serviceName: true, tags: true, iconUrl: true })
      .optional()
      .catch(undefined),
    extensions: z.record(z.string(), z.unknown()).optional().catch(undefined),
  }),
  paymentRequirements: described.extend({
    resource: z.string().optional().catch(undefined),
    maxTimeoutSeconds: z.int().nonnegative().optional().catch(undefined),
    extra: z
      .object({
        name: z.string().max(64).optional().catch(undefined),
        version: z.string().max(16).optional().catch(undefined),
        facilitatorAddress: address.optional().catch(undefined),
      })
      .optional()
      .catch(undefined),
  }),
});

/** The payment method, as an offer names it. */
type Way = Pick<PayloadReader, "scheme"> & Pick<MethodTerms, "transfer">;

/**
 * Reads the resource that a settled payment bought; undefined if it has no http(s) URL. In version 1 it is in the
 * shop's requirements; in version 2 the payer's client repeats what the shop sent. Never throws: input nested too
 * deeply to be serialized is undefined, too.
 */
export function readResource(body: unknown, payment: PaymentRequest, way: Way): SeenResource | undefined {
  try {
    return read(body, payment, way);
  } catch {
    return undefined;
  }
}

function read(body: unknown, payment: PaymentRequest, way: Way): SeenResource | undefined {
  const parsed = bodySchema.safeParse(body);
  if (!parsed.success) return undefined;
  const { paymentPayload, paymentRequirements } = parsed.data;
  const { x402Version } = payment;
  const told =
    x402Version === 2
      ? paymentPayload.resource
      : { ...paymentRequirements, url: paymentRequirements.resource };
  const url = cleanUrl(told?.url);
  if (told === undefined || url === undefined) return undefined;

  const bazaar = x402Version === 2 ? readBazaar(paymentPayload.extensions?.bazaar) : undefined;
  const { type = "http", toolName, routeTemplate, info } = bazaar ?? {};
  const address = routeTemplate === undefined ? url.href : `${url.origin}${routeTemplate}`;
  const { mimeType } = told;
  const description = told.description && toPlainText(told.description);
  return {
    key: JSON.stringify([type, address, toolName]),
    resource: {
      resource: address,
      type,
      x402Version,
      accepts: [acceptsOf(payment, way, paymentRequirements, { address, description, mimeType })],
      ...(description && { description }),
      ...(mimeType && { mimeType }),
      ...(paymentPayload.resource && x402Version === 2 && readServiceMetadata(paymentPayload.resource)),
      ...(info !== undefined && { extensions: { bazaar: { info } } }),
    },
  };
}

/** The transfer method of an offer that names none. */
const unsaidTransfer = "eip3009";

function acceptsOf(
  { x402Version, network, requirements, payment }: PaymentRequest,
  { scheme, transfer }: Way,
  { maxTimeoutSeconds, extra }: z.infer<typeof bodySchema>["paymentRequirements"],
  told: { address: string; description: string | undefined; mimeType: string | undefined },
): DiscoveredResource["accepts"][number] {
  const { address: resource, description = "", mimeType = "" } = told;
  // The offered amount: a payment of scheme “upto” may have been settled for less.
  const amount = payment.limit.toString();
  const known = { ...extra, ...(transfer !== unsaidTransfer && { assetTransferMethod: transfer }) };
  return {
    scheme,
    network,
    // Version 1 has these members in its requirements, version 2 beside them.
    ...(x402Version === 1 ? { maxAmountRequired: amount, resource, description, mimeType } : { amount }),
    asset: requirements.asset,
    payTo: requirements.payTo ?? payment.payTo,
    ...(maxTimeoutSeconds !== undefined && { maxTimeoutSeconds }),
    ...(Object.keys(known).length > 0 && { extra: known }),
  };
}

/** Parses an http(s) URL and removes its query, hash and credentials; undefined for anything else. */
function cleanUrl(text: string | undefined): URL | undefined {
  if (text === undefined || text.length > longestUrl) return undefined;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  for (const part of ["search", "hash", "username", "password"] as const) url[part] = "";
  return url;
}

/** One line of text without characters that hide text or reverse its direction, truncated between characters. */
function toPlainText(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return plain.slice(0, longestDescription).replace(/\p{Cs}$/u, "");
}

/** A resource's description of its service. */
type ServiceMetadata = Pick<DiscoveredResource, "serviceName" | "tags" | "iconUrl">;

const printable = /^[\x20-\x7e]{1,32}$/;
const mostTags = 5;
const longestIconUrl = 2_048;
const loopbackNames = /^(localhost|localhost\.localdomain|ip6-localhost|ip6-loopback)\.?$/i;

/** Reads the members by the rules of the extension `bazaar`; invalid ones are left out. */
export function readServiceMetadata(resource: {
  serviceName?: unknown;
  tags?: unknown;
  iconUrl?: unknown;
}): ServiceMetadata {
  const { serviceName, iconUrl } = resource;
  const tags = readTags(resource.tags);
  return {
    ...(isPrintable(serviceName) && { serviceName }),
    ...(tags.length > 0 && { tags }),
    ...(isIconUrl(iconUrl) && { iconUrl }),
  };
}

function isPrintable(text: unknown): text is string {
  return typeof text === "string" && printable.test(text);
}

function readTags(tags: unknown): string[] {
  if (!Array.isArray(tags)) return [];
  const found = new Map<string, string>();
  for (const tag of tags.slice(0, 100)) {
    if (!isPrintable(tag) || found.has(tag.toLowerCase())) continue;
    found.set(tag.toLowerCase(), tag);
  }
  return [...found.values()].slice(0, mostTags);
}

/** True for a URL with a host name: an IP address could lead readers of the catalogue into their own network. */
function isIconUrl(text: unknown): text is string {
  if (typeof text !== "string" || text.length > longestIconUrl || /\p{Cc}/u.test(text)) return false;
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text) || url.username !== "" || url.password !== "") return false;
  // The parser has decoded the host and normalized every spelling of an IPv4 address.
  return !/^(\d+\.){3}\d+$|^\[|^\d+$|^0x[0-9a-f]*$/i.test(url.hostname) && !loopbackNames.test(url.hostname);
}

type Resource = SeenResource["resource"];

/** The most offers kept for one resource. */
const mostAccepts = 10;

/** Merges two sightings: the newest description counts; earlier offers of the same protocol version stay. */
export function mergeResource(earlier: Resource | undefined, seen: Resource): Resource {
  if (earlier === undefined || earlier.x402Version !== seen.x402Version) return seen;
  const keyOf = ({ scheme, network, asset, extra }: Resource["accepts"][number]) =>
    JSON.stringify([scheme, network, asset, extra?.assetTransferMethod]);
  const isNew = new Set(seen.accepts.map(keyOf));
  const others = earlier.accepts.filter((one) => !isNew.has(keyOf(one)));
  return { ...seen, accepts: [...seen.accepts, ...others].slice(0, mostAccepts) };
}

/** The parts of the extension that are kept. */
type Bazaar = { type: "http" | "mcp"; toolName?: string; routeTemplate?: string; info: object };

/** In characters; longer ones are left out of the catalogue. */
const longestInfo = 4_096;
const longestSchema = 8_192;

/** The most values in the whole extension, and how deep they may be nested; some 60 values are usual. */
const mostValues = 300;
const deepest = 32;

/** The limit for values in `info` times values in its schema: each may be compared with each, in some milliseconds. */
const mostComparisons = 4_000;

const anyObject = z.record(z.string(), z.unknown());
const output = z.looseObject({ type: z.string() }).optional();
const infoSchema = z.union([
  z.looseObject({
    input: z.looseObject({
      type: z.literal("http"),
      method: z.enum(["GET", "HEAD", "DELETE", "POST", "PUT", "PATCH"]),
    }),
    output,
  }),
  z.looseObject({
    input: z.looseObject({
      type: z.literal("mcp"),
      // Shown to people, so it must not contain control characters or characters that hide or reverse text.
      toolName: z.string().regex(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{1,128}$/u),
      inputSchema: anyObject,
    }),
    output,
  }),
]);

const extensionSchema = z.object({
  info: infoSchema,
  schema: anyObject,
  routeTemplate: z.string().optional().catch(undefined),
});

/**
 * Reads the extension `bazaar` of a payment. Undefined if it breaks the rules of the extension, if its `info` does
 * not match its `schema`, or if either is large. The payer's client sends both, so anything slow is rejected: many
 * values, patterns, and references, with which a short schema can repeat a condition billions of times.
 */
export function readBazaar(extension: unknown): Bazaar | undefined {
  if (countValues(extension) > mostValues) return undefined;
  const parsed = extensionSchema.safeParse(extension);
  if (!parsed.success) return undefined;
  const { info, schema, routeTemplate } = parsed.data;
  if (JSON.stringify(info).length > longestInfo || !follows(info, schema)) return undefined;
  const { input } = info;
  return {
    type: input.type,
    ...(input.type === "mcp" && { toolName: input.toolName }),
    ...(input.type === "http" && isRouteTemplate(routeTemplate) && { routeTemplate }),
    info,
  };
}

/** Payments for one resource repeat its description, and building a schema blocks the event loop for milliseconds. */
const followed = createBoundedMap<string, boolean>(200);

function follows(info: object, schema: Record<string, unknown>): boolean {
  const text = JSON.stringify(schema);
  if (text.length > longestSchema || /"(pattern|patternProperties|\$ref|\$dynamicRef|\$id)":/.test(text))
    return false;
  if (countValues(info) * countValues(schema) > mostComparisons) return false;
  const asked = `${JSON.stringify(info)}\n${text}`;
  const known = followed.get(asked);
  if (known !== undefined) return known;
  const result = tryToFollow(info, schema);
  followed.set(asked, result);
  return result;
}

function tryToFollow(info: object, schema: Record<string, unknown>): boolean {
  try {
    // In the default registry, an `id` in the schema would stay in memory, among the ids of this package's own schemas.
    return z.fromJSONSchema(schema, { registry: z.registry() }).safeParse(info).success;
  } catch {
    return false;
  }
}

/** Stops counting above {@link mostValues}; values nested deeper than {@link deepest} count as too many. */
function countValues(value: unknown, depth = 0): number {
  if (typeof value !== "object" || value === null) return 1;
  if (depth > deepest) return Number.POSITIVE_INFINITY;
  let count = 1;
  for (const name in value) {
    count += countValues(Reflect.get(value, name), depth + 1);
    if (count > mostValues) break;
  }
  return count;
}

/** Checks a template by the rules of the extension; one that breaks them is ignored. */
function isRouteTemplate(template: string | undefined): template is string {
  if (template === undefined || template.length > 512 || !/^\/[a-zA-Z0-9_/:.\-~%]+$/.test(template))
    return false;
  try {
    const decoded = decodeURIComponent(template);
    return !decoded.includes("..") && !decoded.includes("://");
  } catch {
    return false;
  }
}
