import { findSlip } from "../util/text.ts";
import { routes, shortenPath } from "./routes.ts";

/* Sentences about paths with nothing at them. */

const payments = ["verify", "settle", "supported", "listSettlements", "getSettlement"] as const;
const described = payments.map((name) => `${routes[name].method} ${routes[name].paths[0]}`);
const reachable = payments.flatMap((name) =>
  routes[name].paths.map((path) => `${routes[name].method} ${path}`),
);

/** The sentence about a path without a route, which is shortened. */
export function noSuchRoute(method: string, path: string): string {
  const shown = shortenPath(path);
  return `There is no ${method} ${shown}${nearestRoute(shown, reachable)}. The service is at ${described.join(", ")}; it is described at /openapi.json`;
}

/** As many letters as a superfluous `/v1`, which is the most frequent mistake. */
const mostTypos = 3;

/**
 * The end of a sentence about a path with nothing at it: the route that was probably meant, if one is near.
 *
 * @param known routes, as `POST /v1/settle`
 */
export function nearestRoute(path: string, known: readonly string[]): string {
  const pathOf = (route: string) => route.slice(route.indexOf("/"));
  const meant = findSlip(path, known.map(pathOf), mostTypos);
  return meant === undefined ? "" : `; the nearest is ${known.find((route) => pathOf(route) === meant)}`;
}
