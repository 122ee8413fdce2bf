/** A route of the service: its method and all its paths. Documents and links use the first path. */
export type Route = { method: "GET" | "POST"; paths: readonly [string, ...string[]] };

/**
 * Every route of the service and the fixtures. Those of the public protocol are also at the root, where the x402
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

/** The path of a settlement: the `Location` of every settle response. */
export function settlementPath(id: string): string {
  return routes.getSettlement.paths[0].replace("{id}", id);
}

/** The longest `{id}` that a router accepts. */
export const longestParameter = 100;

/**
 * Decodes a path as routers do: all escapes except those of reserved characters.
 *
 * @throws {URIError} if it cannot be decoded
 */
export function decodePath(path: string): string {
  return path.includes("%") ? decodeURI(path) : path;
}

/** Finds the route of a path, and the `{id}` in it. Ignores a trailing slash; as in routers, the id may be empty. */
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

/** The methods of a route, as listed in `Allow`. */
export function allowedMethods(name: RouteName): readonly string[] {
  return routes[name].method === "GET" ? ["GET", "HEAD"] : ["POST"];
}

/** Shortens a path for responses. */
export function shortenPath(path: string): string {
  return path.length > 100 ? `${path.slice(0, 100)}…` : path;
}

/** The origins of web pages that may call the service: a list, or all. */
export type CorsOrigins = "*" | readonly string[];

/** Response headers that pages may read in addition to those that are always readable. */
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

/** The options of `@fastify/cors`, shared by the service and the mock server. Cookies are not used. */
export function corsOptions(origins: CorsOrigins) {
  return {
    origin: origins === "*" ? "*" : [...origins],
    methods: ["GET", "HEAD", "POST"],
    exposedHeaders,
    maxAge: 600,
  };
}
