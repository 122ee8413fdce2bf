/** A route of the service: its method, and every path that it is at. Documents and links name the first path. */
export type Route = { method: "GET" | "POST"; paths: readonly [string, ...string[]] };

/**
 * Every route of the service and of the fixtures. Those of the public protocol are at the root too, where the x402
 * project's own tools look for them; `HTTPFacilitatorClient` works with either base URL.
 */
export const routes = {
  verify: { method: "POST", paths: ["/v1/verify", "/verify"] },
  settle: { method: "POST", paths: ["/v1/settle", "/settle"] },
  supported: { method: "GET", paths: ["/v1/supported", "/supported"] },
  listSettlements: { method: "GET", paths: ["/v1/settlements"] },
  getSettlement: { method: "GET", paths: ["/v1/settlements/{id}"] },
  listResources: { method: "GET", paths: ["/v1/discovery/resources", "/discovery/resources"] },
  searchResources: { method: "GET", paths: ["/v1/discovery/search", "/discovery/search"] },
  health: { method: "GET", paths: ["/v1/health", "/health"] },
  livez: { method: "GET", paths: ["/livez"] },
  readyz: { method: "GET", paths: ["/readyz"] },
} as const satisfies Readonly<Record<string, Route>>;

export type RouteName = keyof typeof routes;

/** Where a settlement can be read: the `Location` of every settle answer. */
export function settlementPath(id: string): string {
  return routes.getSettlement.paths[0].replace("{id}", id);
}

/** The longest `{id}` that a router looks at. */
export const longestParameter = 100;

/**
 * A path as routers match it, its escapes decoded but for those of reserved characters.
 *
 * @throws URIError when it cannot be decoded
 */
export function decodePath(path: string): string {
  return path.includes("%") ? decodeURI(path) : path;
}

/** The route at a path, and the `{id}` in it; undefined where there is none. A slash at the end does not count; an id may be empty, as routers have it. */
export function findRoute(path: string): { name: RouteName; id: string | undefined } | undefined {
  for (const { name, pattern } of patterns) {
    const match = pattern.exec(path);
    if (match !== null) return { name, id: match[1] };
  }
  return undefined;
}

const patterns = (Object.entries(routes) as readonly [RouteName, Route][]).flatMap(([name, { paths }]) =>
  paths.map((path) => ({ name, pattern: new RegExp(`^${path.replace("{id}", "([^/]*)")}/?$`) })),
);

/** The methods of a route, as `Allow` lists them. */
export function allowedMethods(name: RouteName): readonly string[] {
  return routes[name].method === "GET" ? ["GET", "HEAD"] : ["POST"];
}

/** A path, shortened for answers. */
export function shortenPath(path: string): string {
  return path.length > 100 ? `${path.slice(0, 100)}…` : path;
}

/** The origins of web pages that may call: a list, or all. */
export type CorsOrigins = "*" | readonly string[];

/** Response headers that pages may read besides those they always may. */
const exposedHeaders = [
  "location",
  "retry-after",
  "www-authenticate",
  "x-request-id",
  "x-settlement-state",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
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
