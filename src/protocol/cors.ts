/** The origins of web pages that may call: a list, or all. */
export type CorsOrigins = "*" | readonly string[];

/** Response headers that pages may read besides those they always may. */
const exposedHeaders = [
  ...["location", "retry-after", "www-authenticate", "x-request-id", "x-settlement-state"],
  ...["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"],
];

/** The options of `@fastify/cors`, the same for the service and the mock server. Cookies play no part. */
export function corsOptions(origins: CorsOrigins) {
  return {
    origin: origins === "*" ? "*" : [...origins],
    methods: ["GET", "HEAD", "POST"],
    exposedHeaders,
    maxAge: 600,
  };
}
