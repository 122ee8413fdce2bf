/**
 * For Fastify's `schemaController`: no route has a schema for it, since bodies are read by zod. Its compilers are loaded
 * even so unless others are given, which takes a twentieth of the start.
 */
export const noSchemas = {
  compilersFactory: { buildValidator: () => refuseSchema, buildSerializer: () => refuseSchema },
};

function refuseSchema(): never {
  throw new Error("routes have no Fastify schemas here; parse with zod");
}
