import { type Route, type RouteName, routes } from "../../../protocol/routes.ts";

/** Where a route is, as Fastify writes parameters. */
export function urlsOf(name: RouteName): readonly string[] {
  const { paths }: Route = routes[name];
  return paths.map((path) => path.replace(/\{(\w+)\}/g, ":$1"));
}
