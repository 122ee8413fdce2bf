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

const payments = ["verify", "settle", "supported", "listSettlements", "getSettlement"] as const;
const known = payments.map((name) => `${routes[name].method} ${routes[name].paths[0]}`);

/**
 * What is said where there is nothing; the path cut to what an answer may repeat.
 *
 * @param nearest finds the texts that one is most likely a slip of
 */
export function noSuchRoute(
  method: string,
  path: string,
  nearest: (text: string, known: readonly string[], count: number) => readonly string[],
): string {
  const asked = `${method} ${shortenPath(path)}`;
  return `There is no ${asked}; the nearest is ${nearest(asked, known, 1)[0]}. The service is at ${known.join(", ")}; it is described at /openapi.json`;
}

/** A path, cut to what an answer may repeat. */
export function shortenPath(path: string): string {
  return path.length > 100 ? `${path.slice(0, 100)}…` : path;
}
