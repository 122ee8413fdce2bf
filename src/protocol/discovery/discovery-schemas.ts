import { z } from "zod";
import { sameAddress } from "../hex.ts";
import { builtInNetworks, type NetworkRegistry } from "../networks.ts";
import { address } from "../primitives.ts";

// Discovery in the public protocol (extension `bazaar`): the resources that can be bought.

/** An offer for a resource, with the members of its protocol version. */
const acceptsSchema = z.looseObject({
  scheme: z.string(),
  network: z.string(),
  asset: z.string(),
  payTo: z.string(),
  extra: z.looseObject({ assetTransferMethod: z.string().optional() }).optional(),
});

/** A paid resource, as the public clients of the extension read it. */
export const discoveredResourceSchema = z.object({
  resource: z
    .string()
    .meta({ description: "Its URL, without query; of a route with parameters, its template" }),
  type: z.enum(["http", "mcp"]),
  x402Version: z.union([z.literal(1), z.literal(2)]),
  accepts: z.array(acceptsSchema).meta({ description: "How it was paid for" }),
  lastUpdated: z.string().meta({ description: "When it was paid for last, to a minute; ISO 8601, UTC" }),
  description: z.string().optional(),
  mimeType: z.string().optional(),
  serviceName: z.string().optional(),
  tags: z.array(z.string()).optional(),
  iconUrl: z.string().optional(),
  extensions: z.record(z.string(), z.unknown()).optional(),
});

export type DiscoveredResource = z.infer<typeof discoveredResourceSchema>;

const version = z.literal(2).meta({ description: "Of this answer" });

export const discoveryListSchema = z.object({
  x402Version: version,
  items: z.array(discoveredResourceSchema),
  pagination: z.object({ limit: z.int(), offset: z.int(), total: z.int() }),
});

export type DiscoveryList = z.infer<typeof discoveryListSchema>;

export const discoverySearchSchema = z.object({
  x402Version: version,
  resources: z.array(discoveredResourceSchema),
  pagination: z.object({
    limit: z.int(),
    cursor: z.string().nullable().meta({ description: "`cursor` of the next page; null when there is none" }),
  }),
});

export type DiscoverySearch = z.infer<typeof discoverySearchSchema>;

const largestPage = 100;
const usualPage = 20;
/** The most resources kept per organization; the least recently paid one is dropped first. */
export const mostResources = 500;
/** An unchanged resource is not written again within this time. */
export const writtenForMs = 60_000;

const wholeNumber = (least: number, most: number) => {
  const message = `must be a whole number from ${least} to ${most}`;
  return z
    .string()
    .regex(/^(0|[1-9]\d{0,5})$/, message)
    .transform(Number)
    .refine((number) => number >= least && number <= most, message);
};

/** The filters of lists and searches. */
const filters = {
  type: z.enum(["http", "mcp"], 'must be "http" or "mcp"').optional(),
  payTo: address.meta({ description: "The facilitator contract of the resource's network" }).optional(),
  scheme: z.string().max(32).optional(),
  network: z
    .string()
    .max(64)
    .meta({ description: "In either version of the protocol", example: "eip155:8453" })
    .optional(),
  extensions: z
    .string()
    .max(64)
    .meta({ description: "The name of an extension that it has", example: "bazaar" })
    .optional(),
  limit: wholeNumber(1, largestPage)
    .meta({ description: `At most ${largestPage}; ${usualPage} by default` })
    .optional(),
};

export const discoveryListQuery = z.strictObject({
  ...filters,
  offset: wholeNumber(0, mostResources).optional(),
});

export const discoverySearchQuery = z.strictObject({
  query: z
    .string("is needed")
    .min(1, "must not be empty")
    .max(200, "must have at most 200 characters")
    .meta({ description: "Words; what has most of them comes first", example: "weather" }),
  ...filters,
  cursor: wholeNumber(0, mostResources)
    .meta({ description: "`pagination.cursor` of the page before" })
    .optional(),
});

/** Reads the query parameters of either route; `detail` lists everything that is wrong with them. */
export function readDiscoveryQuery<Query>(
  schema: z.ZodType<Query>,
  parameters: unknown,
): { query: Query } | { detail: string } {
  const { data, error } = schema.safeParse(parameters);
  if (error === undefined) return { query: data };
  return { detail: error.issues.map(({ path, message }) => [...path, message].join(" ")).join("; ") };
}

/** The filters of both lists. */
type DiscoveryFilter = Omit<z.infer<typeof discoveryListQuery>, "limit" | "offset">;

/** Returns a page of the resources that pass a filter, in the given order. */
export function listResources(
  all: readonly DiscoveredResource[],
  { limit = usualPage, offset = 0, ...filter }: z.infer<typeof discoveryListQuery>,
  known: NetworkRegistry = builtInNetworks,
): DiscoveryList {
  const found = all.filter((resource) => passes(resource, filter, known));
  const items = found.slice(offset, offset + limit);
  return { x402Version: 2, items, pagination: { limit, offset, total: found.length } };
}

/** Returns a page of the resources that contain words of the query, most words first. */
export function searchResources(
  all: readonly DiscoveredResource[],
  { query, limit = usualPage, cursor = 0, ...filter }: z.infer<typeof discoverySearchQuery>,
  known: NetworkRegistry = builtInNetworks,
): DiscoverySearch {
  const words = [...new Set(query.toLowerCase().match(/\S+/g))];
  const found = all
    .filter((resource) => passes(resource, filter, known))
    .map((resource) => ({ resource, score: countWords(resource, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score);
  const end = cursor + limit;
  return {
    x402Version: 2,
    resources: found.slice(cursor, end).map(({ resource }) => resource),
    pagination: { limit, cursor: end < found.length ? `${end}` : null },
  };
}

function passes(
  { type, accepts, extensions = {} }: DiscoveredResource,
  filter: DiscoveryFilter,
  known: NetworkRegistry,
): boolean {
  const nameOf = (network: string) => (known.find(network, 1) ?? known.find(network, 2))?.name ?? network;
  const isAccepted = (one: z.infer<typeof acceptsSchema>) =>
    (filter.scheme === undefined || one.scheme === filter.scheme) &&
    (filter.network === undefined || nameOf(one.network) === nameOf(filter.network)) &&
    (filter.payTo === undefined || sameAddress(one.payTo, filter.payTo));
  return (
    (filter.type === undefined || type === filter.type) &&
    (filter.extensions === undefined || Object.hasOwn(extensions, filter.extensions)) &&
    accepts.some(isAccepted)
  );
}

function countWords(
  { resource, description = "", serviceName = "", tags = [], extensions = {} }: DiscoveredResource,
  words: readonly string[],
): number {
  const text = [resource, description, serviceName, ...tags, JSON.stringify(extensions)]
    .join(" ")
    .toLowerCase();
  return words.filter((word) => text.includes(word)).length;
}
