import { findSlip } from "../util/text.ts";
import { routes, shortenPath } from "./routes.ts";

/* Messages about unknown paths. */

const payments = ["verify", "settle", "supported", "listSettlements", "getSettlement"] as const;
const described = payments.map((name) => `${routes[name].method} ${routes[name].paths[0]}`);
const reachable = payments.flatMap((name) =>
  routes[name].paths.map((path) => `${routes[name].method} ${path}`),
);

/** The message about a path without a route; long paths are shortened. */
export function noSuchRoute(method: string, path: string): string {
  const shown = shortenPath(path);
  return `There is no ${method} ${shown}${nearestRoute(shown, reachable)}. The service is at ${described.join(", ")}; it is described at /openapi.json`;
}

/** The length of a superfluous `/v1`, the most frequent mistake. */
const mostTypos = 3;

/**
 * The end of a message about an unknown path: the route that was probably meant, if one is close.
 *
 * @param known routes, such as `POST /v1/settle`
 */
export function nearestRoute(path: string, known: readonly string[]): string {
  const pathOf = (route: string) => route.slice(route.indexOf("/"));
  const meant = findSlip(path, known.map(pathOf), mostTypos);
  return meant === undefined ? "" : `; the nearest is ${known.find((route) => pathOf(route) === meant)}`;
}
