import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import reference from "@scalar/fastify-api-reference";
import Fastify from "fastify";

/**
 * Writes the page of `/docs` and its compressed script, for `src/service/http/routes/docs.ts`. The library is needed
 * only to build: it brings 23 MB, of which the service needs just these two files.
 */
export async function buildApiReference(folder: string): Promise<void> {
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
  const [page, script] = await Promise.all([app.inject("/docs/"), app.inject("/docs/js/scalar.js")]);
  await app.close();
  mkdirSync(folder, { recursive: true });
  const license = readFileSync(
    new URL("../node_modules/@scalar/fastify-api-reference/LICENSE", import.meta.url),
  );
  writeFileSync(join(folder, "index.html"), page.rawPayload);
  writeFileSync(join(folder, "scalar.js.br"), brotliCompressSync(script.rawPayload));
  writeFileSync(join(folder, "LICENSE.txt"), license);
}
