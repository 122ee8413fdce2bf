import type { FastifyPluginAsync } from "fastify";
import { createStaticFile, immutable, revalidate, type StaticFile } from "../documents/static-file.ts";

/** The page may run its own script, which evaluates code, and may ask this service alone. */
const pagePolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'";

/** `GET /docs/`: a page to read `/openapi.json` with, and its script. */
export const docsRoutes: FastifyPluginAsync = async (app) => {
  let files: Promise<Files> | undefined;
  const load = () => {
    files ??= render();
    return files;
  };
  const config = { countedAs: "documents" } as const;

  app.get("/docs", { config }, async (request, reply) => {
    if (request.url.split("?")[0] !== "/docs/") return reply.redirect("/docs/", 301);
    reply.header("content-security-policy", pagePolicy);
    return (await load()).page.send(request, reply);
  });
  app.get("/docs/js/scalar.js", { config }, async (request, reply) =>
    (await load()).script.send(request, reply),
  );
};

type Files = { page: StaticFile; script: StaticFile };

const scriptPath = "js/scalar.js";

/** The renderer is large and rarely wanted: it is loaded by the first visit, not by every start. */
async function render(): Promise<Files> {
  const [{ default: Fastify }, { default: reference }] = await Promise.all([
    import("fastify"),
    import("@scalar/fastify-api-reference"),
  ]);
  const app = Fastify();
  await app.register(reference, {
    routePrefix: "/docs",
    configuration: {
      url: "/openapi.json",
      pageTitle: "x402 facilitator",
      withDefaultFonts: false,
      hideClientButton: true,
      telemetry: false,
      showDeveloperTools: "never",
      agent: { disabled: true },
      mcp: { disabled: true },
    },
  });
  const [page, script] = await Promise.all([app.inject("/docs/"), app.inject(`/docs/${scriptPath}`)]);
  await app.close();
  const file = createStaticFile(script.rawPayload, {
    type: "application/javascript; charset=utf-8",
    cacheControl: ({ query }) => (isVersioned(query, file.hash) ? immutable : revalidate),
  });
  return {
    script: file,
    page: createStaticFile(page.body.replaceAll(scriptPath, `${scriptPath}?v=${file.hash}`), {
      type: "text/html; charset=utf-8",
      cacheControl: () => revalidate,
    }),
  };
}

function isVersioned(query: unknown, hash: string): boolean {
  return typeof query === "object" && query !== null && "v" in query && query.v === hash;
}
