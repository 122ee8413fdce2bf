import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { FastifyInstance } from "fastify";
import type { ExplainContext } from "../explain/explain.ts";
import { againRoutes, type Resend } from "./again-routes.ts";
import type { PaymentChain } from "./payment-chain.ts";
import type { PaymentLog } from "./payment-log.ts";
import { paymentRoutes } from "./payment-routes.ts";

export type StudioOptions = {
  log: PaymentLog;
  context: Pick<ExplainContext, "contracts" | "networks">;
  /** Where payments may be sent again; read only without. */
  resend?: Resend | undefined;
  /** Where the chains of payments can be asked. */
  chain?: PaymentChain | undefined;
};

/** The page and its files, as `npm run build` leaves them. */
const pageFolder = new URL("../../dist/studio-page/", import.meta.url);

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

/**
 * `GET /payments`, `GET /payments/{id}`, `GET /events` and the page `GET /studio`: what a local service did about each
 * payment, without signatures or keys. With `resend`, `POST /payments/{id}/again` sends a payment once more, and
 * `POST /payments/{id}/curl` writes it as a command; the caller keeps foreign pages from both.
 */
export async function studioRoutes(
  app: FastifyInstance,
  { log, context, resend, chain }: StudioOptions,
): Promise<void> {
  paymentRoutes(app, { log, context, chain });

  if (resend !== undefined) againRoutes(app, { log, contracts: context.contracts, resend });

  app.get("/", async (_, reply) => reply.redirect("/studio"));
  for (const path of ["/studio", "/studio/*"]) {
    app.get<{ Params: { "*"?: string } }>(path, async (request, reply) => {
      const name = request.params["*"] ?? "";
      const file = name === "" ? "index.html" : name;
      const type = mediaTypes[extname(file)];
      const content =
        type === undefined || !/^[\w./-]+$/.test(file) || file.includes("..")
          ? undefined
          : await readPage(file);
      if (content === undefined && file === "index.html") {
        return reply.code(503).header("content-type", type).send(notBuilt);
      }
      if (content === undefined)
        return reply.code(404).send({ error: "There is no such file; the page is at /studio" });
      return reply
        .header("content-type", type)
        .header("content-security-policy", pagePolicy)
        .header("cache-control", file === "index.html" ? "no-cache" : "public, max-age=31536000, immutable")
        .send(content);
    });
  }
}

async function readPage(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(new URL(file, pageFolder));
  } catch {
    return undefined;
  }
}
