import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { FastifyInstance } from "fastify";
import { self } from "../../util/self-command.ts";

/** The page and its files, as `npm run build` leaves them. */
export const builtPage = new URL("../../../dist/studio-page/", import.meta.url);

/** What the page may do: load its own files, and ask this service alone. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** In a checkout that was never built, in the place of the page. */
const notBuilt = `<!doctype html>
<title>x402 studio: not built</title>
<h1>The studio’s page is not built</h1>
<p>Build it in this checkout with <code>npm run build</code>, then load this page again; nothing need be restarted.</p>
<p>Payments are at <a href="/payments">/payments</a> meanwhile.</p>
`;

const mediaTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Files of the page's own folder and those in it: no part of the way is empty or begins with a dot. */
const pageFile = /^([\w-][\w.-]*\/)*[\w-][\w.-]*$/;

/** As `index.html` has it for how the command is called. */
const usualCommand = '<meta name="command" content="npx x402-kit"';

/**
 * `GET /studio`, and `GET /` which leads there: the page and its files, from the folder that they were built into.
 *
 * @param command how the command is called here, for what the page tells to type
 */
export function pageRoutes(app: FastifyInstance, folder: URL, command = self): void {
  app.get("/", async (_, reply) => reply.redirect("/studio"));
  for (const path of ["/studio", "/studio/*"]) {
    app.get<{ Params: { "*"?: string } }>(path, async (request, reply) => {
      const name = request.params["*"] ?? "";
      const file = name === "" ? "index.html" : name;
      const type = mediaTypes[extname(file)];
      const content =
        type === undefined || !pageFile.test(file) ? undefined : await readPage(new URL(file, folder));
      if (content === undefined && file === "index.html") {
        return reply.code(503).header("content-type", type).send(notBuilt);
      }
      if (content === undefined)
        return reply.code(404).send({ error: "There is no such file; the page is at /studio" });
      return reply
        .header("content-type", type)
        .header("content-security-policy", pagePolicy)
        .header("cache-control", file === "index.html" ? "no-cache" : "public, max-age=31536000, immutable")
        .send(file === "index.html" ? withCommand(content, command) : content);
    });
  }
}

function withCommand(page: Buffer, command: string): string {
  return page.toString().replace(usualCommand, usualCommand.replace("npx x402-kit", command));
}

async function readPage(file: URL): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch {
    return undefined;
  }
}
