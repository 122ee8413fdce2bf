import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { packageFile, self } from "../../util/self-command.ts";
import type { RefusalContext } from "../explain/explanations.ts";
import {
  paymentAnswerSchema,
  paymentListSchema,
  paymentSummarySchema,
  transactionViewSchema,
} from "../timeline/payment-view.ts";
import type { Timeline } from "../timeline/timeline.ts";
import { channelsRoute, type ListChannels } from "./channel-views.ts";
import { llmsRoutes } from "./llms-routes.ts";
import type { PaymentChain } from "./payment-detail.ts";
import { againRoutes, paymentRoutes, type Resend } from "./payment-routes.ts";

/** Used to send payments again, read chains and list channels. Without them, payments are only shown. */
type Actions = { resend?: Resend; chain?: PaymentChain; channels?: ListChannels };

/**
 * Serves `GET /payments`, `GET /payments/{id}`, `GET /events` and the page `GET /studio` beside a local service: what
 * it did with each payment, without signatures or keys. Also `GET /errors`, the meaning of each refusal, and
 * `GET /llms.txt` for coding agents. With `resend`, `POST /payments/{id}/again` sends a payment once more and
 * `POST /payments/{id}/curl` returns the command for it; the caller must keep pages of other origins from both.
 */
export function serveStudio(
  app: FastifyInstance,
  {
    timeline,
    resend,
    chain,
    channels = async () => [],
    ...context
  }: { timeline: Timeline } & Actions & RefusalContext,
): void {
  app.register(async (scope) => {
    paymentRoutes(scope, { timeline, context, chain });
    channelsRoute(scope, { timeline, list: channels, chain });
    if (resend !== undefined) againRoutes(scope, { timeline, context, resend });
    pageRoutes(scope, builtPage);
    shopRoute(scope);
    llmsRoutes(scope);
    scope.get("/errors", async (_, reply) => {
      const { errorsPage, errorsPagePolicy } = await import("./errors-page.ts");
      return reply
        .header("content-type", "text/html; charset=utf-8")
        .header("content-security-policy", errorsPagePolicy)
        .send(errorsPage());
    });
  });
}

/** The page and its files, built by `npm run build`. */
const builtPage = pathToFileURL(packageFile("dist/studio-page/"));

/** The page may load only its own files and call only this service. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Shown instead of the page in a checkout that was never built. */
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

/** Files below the page's own folder: no path segment is empty or begins with a dot. */
const pageFile = /^([\w-][\w.-]*\/)*[\w-][\w.-]*$/;

/** The views of the page that have a URL; the page itself reads which one it is. */
const viewOfPage = /^(payments(\/.*)?|channels|chains|faults|setup)$/s;

/** How `index.html` writes the command's name. */
const usualCommand = '<meta name="command" content="npx --no-install x402-kit"';

/**
 * `GET /studio`, and `GET /`, which redirects to it: the page and its files, from the folder they were built into.
 *
 * @param command how to call the command here, for what the page tells people to type
 */
export function pageRoutes(app: FastifyInstance, folder: URL, command = self): void {
  app.get("/", async (_, reply) => reply.redirect("/studio"));
  for (const path of ["/studio", "/studio/*"]) {
    app.get<{ Params: { "*"?: string } }>(path, async (request, reply) => {
      const name = request.params["*"] ?? "";
      const file = name === "" || viewOfPage.test(name) ? "index.html" : name;
      const type = mediaTypes[extname(file)];
      const isPage = file === "index.html";
      const isFile = type !== undefined && pageFile.test(file);
      const content = isFile ? await readFile(new URL(file, folder)).catch(() => undefined) : undefined;
      if (content === undefined) {
        return isPage
          ? reply.code(503).header("content-type", type).send(notBuilt)
          : reply.code(404).send({ error: "There is no such file; the page is at /studio" });
      }
      const here = usualCommand.replace("npx --no-install x402-kit", command);
      return reply
        .header("content-type", type)
        .header("content-security-policy", pagePolicy)
        .header("cache-control", isPage ? "no-cache" : "public, max-age=31536000, immutable")
        .send(isPage ? content.toString().replace(usualCommand, here) : content);
    });
  }
}

/** `GET /shop`: when `GET /supported` was last called (shops do so at startup), in Unix milliseconds; null before. */
function shopRoute(app: FastifyInstance): void {
  let connectedAt: number | null = null;
  app.server.on("request", ({ method, url = "" }: IncomingMessage, response: ServerResponse) => {
    if (method !== "GET" || !/^(\/v1)?\/supported\/?(\?|$)/.test(url)) return;
    response.once("finish", () => {
      if (response.statusCode === 200) connectedAt = Date.now();
    });
  });
  app.get("/shop", async (_, reply) => reply.header("cache-control", "no-store").send({ connectedAt }));
}

/** The studio's additions to the OpenAPI document of the service beside it. */
export function describeStudioApi(): { paths: object; schemas: object } {
  const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "output" });
  const json = (name: string, description: string) => ({
    "200": { description, content: { "application/json": { schema: reference(name) } } },
  });
  const id = {
    name: "id",
    in: "path",
    required: true,
    schema: { type: "string" },
    description: "The settlement id, or the hash of a transaction that carries the payment",
  };
  return {
    paths: {
      "/payments": {
        get: {
          operationId: "listPayments",
          summary: "What became of the newest payments",
          parameters: [
            { name: "limit", in: "query", schema: { type: "integer", default: 100, maximum: 10_000 } },
          ],
          responses: json("PaymentList", "Newest first"),
        },
      },
      "/payments/{id}": {
        get: {
          operationId: "getPayment",
          summary: "Everything about one payment, with why it was refused",
          parameters: [id],
          responses: {
            ...json("PaymentAnswer", "The payment"),
            "404": { description: "No request has named it, or it is forgotten by now" },
          },
        },
      },
      "/payments/{id}/transaction": {
        get: {
          operationId: "getPaymentTransaction",
          summary:
            "The transaction that carried a payment: its call without signatures, gas, fee, block and events",
          description: "Where the chains can be asked: `up`, and the admin listener of `serve`",
          parameters: [id],
          responses: {
            ...json("PaymentTransaction", "The newest transaction that carried it"),
            "404": { description: "No readable payment of this id was seen" },
            "409": { description: "No transaction has carried it" },
          },
        },
      },
      "/channels": {
        get: {
          operationId: "listChannels",
          summary: "The newest channels of scheme batch-settlement that were opened here",
          responses: {
            "200": {
              description: "Amounts are decimal strings in the token's smallest unit",
              content: { "application/json": { schema: { type: "object", required: ["channels"] } } },
            },
          },
        },
      },
      "/shop": {
        get: {
          operationId: "getShop",
          summary: "When a shop last read `GET /supported`, which shops do when they start",
          responses: {
            "200": {
              description: "In unix milliseconds; null if none has",
              content: {
                "application/json": {
                  schema: {
                    type: "object",
                    required: ["connectedAt"],
                    properties: { connectedAt: { type: ["number", "null"] } },
                  },
                },
              },
            },
          },
        },
      },
      "/events": {
        get: {
          operationId: "followPayments",
          summary: "Every change of a payment, as Server-Sent Events",
          description:
            "Events `payment` hold a PaymentSummary as JSON. `reset` says that all that was known before is forgotten. A reader that comes back with `Last-Event-ID` gets what it missed, once.",
          parameters: [{ name: "Last-Event-ID", in: "header", schema: { type: "string" } }],
          responses: {
            "200": {
              description: "A stream that does not end",
              content: { "text/event-stream": { schema: reference("PaymentSummary") } },
            },
            "429": { description: "The address, or the connection, has as many streams as it can have" },
            "503": { description: "As many streams are open as can be" },
          },
        },
      },
    },
    schemas: {
      PaymentSummary: schemaOf(paymentSummarySchema),
      PaymentList: schemaOf(paymentListSchema),
      PaymentAnswer: schemaOf(paymentAnswerSchema),
      PaymentTransaction: schemaOf(transactionViewSchema),
    },
  };
}
