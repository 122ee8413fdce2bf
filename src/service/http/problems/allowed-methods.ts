import type { FastifyInstance } from "fastify";

/** The methods that a path takes; none where there is no such path. */
export type AllowedMethods = (path: string) => readonly string[];

/** Collects the methods of routes that are registered from now on, except those with a wildcard. */
export function collectAllowedMethods(app: FastifyInstance): AllowedMethods {
  const routes = new Map<string, { matches: RegExp; methods: Set<string> }>();
  app.addHook("onRoute", ({ url, method }) => {
    if (url.includes("*")) return;
    const route = routes.get(url) ?? { matches: patternOf(url), methods: new Set<string>() };
    for (const one of [method].flat()) route.methods.add(one);
    routes.set(url, route);
  });
  return (path) => {
    const found = [...routes.values()].filter(({ matches }) => matches.test(path));
    return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort();
  };
}

/** `/v1/settlements/:id`, with or without a slash at its end. */
function patternOf(url: string): RegExp {
  const parts = url
    .split("/")
    .map((part) => (part.startsWith(":") ? "[^/]+" : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")));
  return new RegExp(`^${parts.join("/")}/?$`);
}
