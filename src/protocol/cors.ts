/** The origins of web pages that may call: some, or all of them. */
export type CorsOrigins = "*" | readonly string[];

/** What pages may read of answers besides the usual. */
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
