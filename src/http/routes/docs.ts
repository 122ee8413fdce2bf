import type { FastifyInstance, FastifyPluginAsync } from "fastify";
import { ProblemError } from "../problems/problem-error.ts";

/** The path of the page that shows the document. */
const pagePath = "/docs";

/** Its script is inlined by the renderer, and it may ask this service alone. */
const pagePolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'";

/** `GET /docs`: a page to read `/openapi.json` with. */
export const docsRoutes: FastifyPluginAsync = async (app) => {
  let page: Promise<FastifyInstance> | undefined;
  const servePage = async (url: string) => {
    page ??= renderPage();
    return (await page).inject(url);
  };
  for (const path of [pagePath, `${pagePath}/*`]) {
    app.get(path, async (request, reply) => {
      const rendered = await servePage(request.url);
      if (rendered.statusCode === 404) throw new ProblemError("notFound", "The page is at /docs");
      return reply
        .code(rendered.statusCode)
        .headers(pick(rendered.headers, ["content-type", "location", "cache-control"]))
        .header("content-security-policy", pagePolicy)
        .send(rendered.rawPayload);
    });
  }
};

/** The renderer is large and rarely wanted: it is loaded by the first visit, not by every start. */
async function renderPage(): Promise<FastifyInstance> {
  const [{ default: Fastify }, { default: reference }] = await Promise.all([
    import("fastify"),
    import("@scalar/fastify-api-reference"),
  ]);
  const page = Fastify();
  await page.register(reference, {
    routePrefix: pagePath,
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
  return page;
}

function pick(headers: Record<string, unknown>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name];
      return typeof value === "string" ? [[name, value]] : [];
    }),
  );
}
