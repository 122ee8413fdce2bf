import { z } from "zod";
import type { PaymentRequest } from "../requests.ts";
import type { DiscoveredResource } from "./discovery-schemas.ts";
import { readBazaar } from "./read-bazaar.ts";

/** A resource as one payment describes it, and the key that identifies it. */
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
      .object({ name: z.string().max(64), version: z.string().max(16) })
      .optional()
      .catch(undefined),
  }),
});

/**
 * What a settled payment was for; undefined where it has no URL of a web server. In version 1 the shop's requirements have
 * it; in version 2 the payer's client repeats what the shop has sent. Never throws: for what is nested too deeply to be
 * written it is undefined too.
 */
export function readResource(body: unknown, payment: PaymentRequest): SeenResource | undefined {
  try {
    return read(body, payment);
  } catch {
    return undefined;
  }
}

function read(body: unknown, payment: PaymentRequest): SeenResource | undefined {
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
      accepts: [acceptsOf(payment, paymentRequirements, { address, description, mimeType })],
      ...(description && { description }),
      ...(mimeType && { mimeType }),
      ...(paymentPayload.resource && x402Version === 2 && readServiceMetadata(paymentPayload.resource)),
      ...(info !== undefined && { extensions: { bazaar: { info } } }),
    },
  };
}

function acceptsOf(
  { x402Version, network, requirements, payment }: PaymentRequest,
  { maxTimeoutSeconds, extra }: z.infer<typeof bodySchema>["paymentRequirements"],
  told: { address: string; description: string | undefined; mimeType: string | undefined },
): DiscoveredResource["accepts"][number] {
  const { address: resource, description = "", mimeType = "" } = told;
  const amount = requirements.amount.toString();
  return {
    scheme: "exact",
    network,
    // Version 1 has these members in its requirements, version 2 beside them.
    ...(x402Version === 1 ? { maxAmountRequired: amount, resource, description, mimeType } : { amount }),
    asset: requirements.asset,
    payTo: requirements.payTo ?? payment.payTo,
    ...(maxTimeoutSeconds !== undefined && { maxTimeoutSeconds }),
    ...(extra && { extra }),
  };
}

/** The URL of a web server, without its query and credentials; undefined for anything else. */
function cleanUrl(text: string | undefined): URL | undefined {
  if (text === undefined || text.length > longestUrl) return undefined;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  for (const part of ["search", "hash", "username", "password"] as const) url[part] = "";
  return url;
}

/** One line, without characters that hide text or reverse its direction, and cut between characters. */
function toPlainText(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return plain.slice(0, longestDescription).replace(/\p{Cs}$/u, "");
}

/** What a resource says about its service. */
type ServiceMetadata = Pick<DiscoveredResource, "serviceName" | "tags" | "iconUrl">;

const printable = /^[\x20-\x7e]{1,32}$/;
const mostTags = 5;
const longestIconUrl = 2_048;
const loopbackNames = /^(localhost|localhost\.localdomain|ip6-localhost|ip6-loopback)\.?$/i;

/** Reads the members by the rules of the extension `bazaar`: invalid ones are left out. */
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

/** A URL with a host name: an IP address could lead readers of the catalogue into their own network. */
function isIconUrl(text: unknown): text is string {
  if (typeof text !== "string" || text.length > longestIconUrl || /\p{Cc}/u.test(text)) return false;
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text) || url.username !== "" || url.password !== "") return false;
  // The parser has decoded the host and made numbers of every spelling into dotted ones.
  return !/^(\d+\.){3}\d+$|^\[|^\d+$|^0x[0-9a-f]*$/i.test(url.hostname) && !loopbackNames.test(url.hostname);
}

type Resource = SeenResource["resource"];

/** Ways to pay for one resource. */
const mostAccepts = 10;

/** The newest description counts; earlier ways to pay of the same protocol version stay. */
export function mergeResource(earlier: Resource | undefined, seen: Resource): Resource {
  if (earlier === undefined || earlier.x402Version !== seen.x402Version) return seen;
  const isSeen = ({ network, asset }: Resource["accepts"][number]) =>
    seen.accepts.some((one) => one.network === network && one.asset === asset);
  const others = earlier.accepts.filter((one) => !isSeen(one));
  return { ...seen, accepts: [...seen.accepts, ...others].slice(0, mostAccepts) };
}
