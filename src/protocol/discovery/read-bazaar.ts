import { z } from "zod";

/** The part of the extension that is kept. */
type Bazaar = { type: "http" | "mcp"; toolName?: string; routeTemplate?: string; info: object };

/** Longer ones are left out of the catalogue. */
const longestInfo = 4_096;
const longestSchema = 8_192;

/** Values of the whole extension, and how deep they are nested: some 60 values are usual. */
const mostValues = 300;
const deepest = 32;

/** The limit for values of `info` times values of its schema, since each may be compared with each: some milliseconds. */
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
      // Shown to people: without control characters, and those that hide text or turn its direction.
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
 * Reads the extension `bazaar` of a payment; undefined where it is not what the extension says, its `info` is not what
 * its `schema` says, or either is large. The payer's client has sent both, so what could take long is not tried: many
 * values, patterns, and references, with which a short schema can say a condition billions of times.
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

function follows(info: object, schema: Record<string, unknown>): boolean {
  const text = JSON.stringify(schema);
  if (text.length > longestSchema || /"(pattern|patternProperties|\$ref|\$dynamicRef|\$id)":/.test(text))
    return false;
  if (countValues(info) * countValues(schema) > mostComparisons) return false;
  try {
    // In the default registry, an `id` in the schema would stay in memory, among the ids of this package's own schemas.
    return z.fromJSONSchema(schema, { registry: z.registry() }).safeParse(info).success;
  } catch {
    return false;
  }
}

/** Stops where there are more than {@link mostValues}; values nested deeper than {@link deepest} are too many. */
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

/** Checks the rules of the extension; a template that breaks one is ignored. */
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
