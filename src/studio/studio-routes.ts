import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { extname } from "node:path";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { KitError } from "../errors.ts";
import type { ExplainContext } from "../explain/explain.ts";
import { againRoutes, type Resend } from "./again-routes.ts";
import { detailOf } from "./describe-payment.ts";
import type { PaymentLog } from "./payment-log.ts";
import { paymentApiVersion } from "./payment-view.ts";

export type StudioOptions = {
  log: PaymentLog;
  context: Pick<ExplainContext, "contracts" | "networks">;
  /** Where payments may be sent again; read only without. */
  resend?: Resend | undefined;
};

/** The page and its files, as `npm run build` leaves them. */
const pageFolder = new URL("../../dist/studio-page/", import.meta.url);

/** What the page may do: load its own files, and ask this service alone. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const mediaTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** A reader that takes nothing for so many bytes is ended; it comes back with its `Last-Event-ID`. */
const mostUnreadBytes = 1_048_576;

/** Comment lines that keep proxies and readers from giving up. */
const keepAliveMs = 15_000;

const mostListed = 10_000;

const limitProblem = `must be a whole number from 1 to ${mostListed}`;

const listQuerySchema = z.strictObject({
  limit: z
    .string(limitProblem)
    .regex(/^[1-9]\d{0,4}$/, limitProblem)
    .transform(Number)
    .refine((limit) => limit <= mostListed, limitProblem)
    .default(100),
});

/** Names each parameter that is wrong, and those that do not exist: ignored, a typo would go unnoticed. */
function refuseQuery({ issues }: z.ZodError): { error: string } {
  return { error: issues.map(({ path, message }) => [...path, message].join(" ")).join("; ") };
}

/**
 * `GET /payments`, `GET /payments/{id}`, `GET /events` and the page `GET /studio`: what a local service did about each
 * payment, without signatures or keys. With `resend`, `POST /payments/{id}/again` sends a payment once more, and
 * `POST /payments/{id}/curl` writes it as a command; the caller keeps foreign pages from both.
 */
export async function studioRoutes(
  app: FastifyInstance,
  { log, context, resend }: StudioOptions,
): Promise<void> {
  const readers = new Set<ServerResponse>();

  app.get("/payments", async (request, reply) => {
    const { data, error } = listQuerySchema.safeParse(request.query);
    if (error !== undefined) return reply.code(400).send(refuseQuery(error));
    return { apiVersion: paymentApiVersion, payments: log.list().slice(0, data.limit) };
  });

  app.get<{ Params: { id: string } }>("/payments/:id", async (request, reply) => {
    const payment = log.find(request.params.id.toLowerCase());
    if (payment === undefined) {
      return reply.code(404).send({ error: "No request has named this payment, or it is forgotten by now" });
    }
    return { apiVersion: paymentApiVersion, payment: detailOf(payment, context) };
  });

  if (resend !== undefined) againRoutes(app, { log, contracts: context.contracts, resend });

  app.get("/events", async (request, reply) => {
    const { error } = z.strictObject({}).safeParse(request.query);
    if (error !== undefined) return reply.code(400).send(refuseQuery(error));
    reply.hijack();
    const response = reply.raw;
    for (const [name, value = ""] of Object.entries(reply.getHeaders())) response.setHeader(name, value);
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    readers.add(response);
    let era = log.era();
    let sent = resumeAt(request.headers["last-event-id"], era);
    const begin = () => {
      response.write("event: reset\ndata: {}\n\n");
      return 0;
    };
    const send = (): void => {
      if (response.writableLength > mostUnreadBytes) {
        response.destroy();
        return;
      }
      // What the reader knows is of another era, or nothing.
      let from = sent === undefined || era !== log.era() ? begin() : sent;
      era = log.era();
      for (const summary of log.changedSince(from)) {
        response.write(`id: ${era}.${summary.version}\nevent: payment\ndata: ${JSON.stringify(summary)}\n\n`);
        from = summary.version;
      }
      sent = from;
    };
    send();
    const unsubscribe = log.onChange(send);
    const timer = setInterval(() => response.write(": still here\n\n"), keepAliveMs);
    response.on("close", () => {
      unsubscribe();
      clearInterval(timer);
      readers.delete(response);
    });
  });

  app.addHook("preClose", async () => {
    for (const response of readers) response.end();
  });

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

/** The version to go on from; undefined when the reader has to begin anew. */
function resumeAt(lastEventId: string | string[] | undefined, era: string): number | undefined {
  const [of, version] = String(lastEventId ?? "").split(".");
  return of === era && /^\d{1,15}$/.test(version ?? "") ? Number(version) : undefined;
}

async function readPage(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(new URL(file, pageFolder));
  } catch (cause) {
    if (file !== "index.html") return undefined;
    throw new KitError("The studio's page is not built", { cause, hints: ["Build it: npm run build"] });
  }
}
