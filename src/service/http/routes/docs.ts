import type { FastifyPluginAsync } from "fastify";
import { readApiReference } from "../api-reference.ts";
import { createStaticFile, immutable, revalidate, type StaticFile } from "../documents/static-file.ts";

/** The page may run its own script, which evaluates code, and may ask this service alone. */
const pagePolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'";

/** `GET /docs/`: a page to read `/openapi.json` with, and its script. */
export const docsRoutes: FastifyPluginAsync = async (app) => {
  let files: Promise<Files> | undefined;
  const loadOnce = () => {
    files ??= load();
    return files;
  };
  const config = { countedAs: "documents" } as const;

  app.get("/docs", { config }, async (request, reply) => {
    if (request.url.split("?")[0] !== "/docs/") return reply.redirect("/docs/", 301);
    reply.header("content-security-policy", pagePolicy);
    return (await loadOnce()).page.send(request, reply);
  });
  app.get("/docs/js/scalar.js", { config }, async (request, reply) =>
    (await loadOnce()).script.send(request, reply),
  );
};

type Files = { page: StaticFile; script: StaticFile };

const scriptPath = "js/scalar.js";

/** They are large and rarely wanted: they are read by the first visit, not by every start. */
async function load(): Promise<Files> {
  const { page, script } = await readApiReference();
  const file = createStaticFile(script, {
    type: "application/javascript; charset=utf-8",
    cacheControl: ({ query }) => (isVersioned(query, file.hash) ? immutable : revalidate),
  });
  return {
    script: file,
    page: createStaticFile(page.replaceAll(scriptPath, `${scriptPath}?v=${file.hash}`), {
      type: "text/html; charset=utf-8",
      cacheControl: () => revalidate,
    }),
  };
}

function isVersioned(query: unknown, hash: string): boolean {
  return typeof query === "object" && query !== null && "v" in query && query.v === hash;
}
