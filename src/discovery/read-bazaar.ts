import { z } from "zod";

/** What of the extension is kept. */
type Bazaar = { type: "http" | "mcp"; toolName?: string; routeTemplate?: string; info: object };

/** Longer ones are left out of the catalogue. */
const longestInfo = 4_096;
const longestSchema = 8_192;

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
      toolName: z.string().min(1).max(128),
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
 * its `schema` says, or either is large. The payer's client has sent both, so nothing that they refer to is fetched, and
 * patterns, which could take for ever, are not tried.
 */
export function readBazaar(extension: unknown): Bazaar | undefined {
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
  if (text.length > longestSchema || /"(pattern|patternProperties|\$dynamicRef|\$id)":/.test(text))
    return false;
  if (/"\$ref":"(?!#)/.test(text)) return false;
  try {
    return z.fromJSONSchema(schema).safeParse(info).success;
  } catch {
    return false;
  }
}

/** The rules of the extension; what breaks one is as if it were not there. */
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
