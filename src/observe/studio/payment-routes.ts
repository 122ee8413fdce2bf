import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Operation } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import type { RefusalContext } from "../explain/explanations.ts";
import { mostListed, type PaymentSummary, paymentApiVersion } from "../timeline/payment-view.ts";
import type { PaymentRecord } from "../timeline/record.ts";
import { earlierSummaries, type KnownNames, newestSummaries, summariesOf } from "../timeline/summary.ts";
import type { Timeline } from "../timeline/timeline.ts";
import { bodyOf, describePayment, type PaymentChain } from "./payment-detail.ts";

type PaymentRouteOptions = {
  timeline: Timeline;
  context: RefusalContext;
  /** Reads the payments' chains, if possible. */
  chain?: PaymentChain | undefined;
  /** Looks up a payment that is not in the timeline, by its settlement id, in a ledger that outlives the timeline. */
  findSettlement?: ((id: string) => Promise<object | undefined>) | undefined;
};

const limitProblem = `must be a whole number from 1 to ${mostListed}`;

const listQuerySchema = z.strictObject({
  limit: z
    .string(limitProblem)
    .regex(/^[1-9]\d{0,4}$/, limitProblem)
    .transform(Number)
    .refine((limit) => limit <= mostListed, limitProblem)
    .default(100),
});

/**
 * `GET /payments`, `GET /payments/{id}` and `GET /events`: what a service did with each payment. If its chains can be
 * read, also `GET /payments/{id}/transaction`: the decoded transaction that carried it.
 */
export function paymentRoutes(
  app: FastifyInstance,
  { timeline, context, chain, findSettlement }: PaymentRouteOptions,
): void {
  app.get("/payments", async (request, reply) => {
    const { data, error } = listQuerySchema.safeParse(request.query);
    if (error !== undefined) {
      // Report unknown parameters too: if ignored, a typo would go unnoticed.
      const problems = error.issues.map(({ path, message }) => [...path, message].join(" "));
      return reply.code(400).send({ error: problems.join("; ") });
    }
    const listed = writeList(newestSummaries(timeline, context, data.limit));
    return reply.type("application/json; charset=utf-8").send(Readable.from(listed, { objectMode: false }));
  });

  app.get<OfPayment>("/payments/:id", async ({ params }, reply) => {
    const id = params.id.toLowerCase();
    const record = timeline.find(id);
    if (record === undefined) {
      const earlier = timeline.earlier().find((one) => one.id === id || one.transaction === id);
      if (earlier !== undefined) return { apiVersion: paymentApiVersion, payment: earlier };
      const error = "No request has named this payment, or it is forgotten by now";
      const settlement = await findSettlement?.(id);
      return reply.code(404).send({ error, settlement });
    }
    return { apiVersion: paymentApiVersion, payment: await describePayment(record, context, chain) };
  });

  if (chain !== undefined) {
    app.get<OfPayment>("/payments/:id/transaction", answerFrom(timeline, chain.transaction));
  }

  eventRoute(app, timeline, context);
}

/** The number of payments written at once. */
const partSize = 100;

/** Writes the list in parts: with slow or many parallel readers, whole lists would take gigabytes of memory. */
function* writeList(payments: readonly PaymentSummary[]): Generator<string> {
  yield `{"apiVersion":${paymentApiVersion},"payments":[`;
  for (let start = 0; start < payments.length; start += partSize) {
    const part = payments.slice(start, start + partSize).map((payment) => JSON.stringify(payment));
    yield `${start === 0 ? "" : ","}${part.join(",")}`;
  }
  yield "]}";
}

type OfPayment = { Params: { id: string } };

/** Answers a request about one payment: 404 if no readable payment has this id, 409 if `make` fails for good. */
function answerFrom(
  timeline: Timeline,
  make: (record: PaymentRecord, request: PaymentRequest) => Promise<object>,
): (request: FastifyRequest<OfPayment>, reply: FastifyReply) => Promise<object> {
  return async ({ params }, reply) => {
    const record = timeline.find(params.id.toLowerCase());
    if (record?.request === undefined) {
      return reply.code(404).send({ error: "No readable payment of this id was seen here" });
    }
    try {
      return await make(record, record.request);
    } catch (error) {
      // An undetermined result may be found next time, so it is not answered with 409.
      if (!(error instanceof KitError) || error instanceof UndeterminedError) throw error;
      return reply.code(409).send({ error: error.message, hints: error.hints });
    }
  };
}

/** Sends a payment's body to the service again, with the local organization's key. */
export type Resend = {
  send(operation: Operation, body: Record<string, unknown>): Promise<{ status: number; body: unknown }>;
  /** The equivalent command for a terminal. */
  describeCurl(operation: Operation, body: Record<string, unknown>): string;
};

const againSchema = z.object({ operation: z.enum(["verify", "settle"]) });

/** `POST /payments/{id}/again` and `/curl`: sends the same payment once more, or returns the command that does. */
export function againRoutes(
  app: FastifyInstance,
  { timeline, context, resend }: PaymentRouteOptions & { resend: Resend },
): void {
  const withBody =
    (make: (operation: Operation, body: Record<string, unknown>) => object | Promise<object>) =>
    (request: FastifyRequest<OfPayment>, reply: FastifyReply): Promise<object> =>
      answerFrom(timeline, async (record, payment) => {
        const { data } = againSchema.safeParse(request.body);
        if (data !== undefined) return make(data.operation, bodyOf(record, payment, context));
        const error = 'The body is to be {"operation":"verify"} or {"operation":"settle"}';
        return reply.code(400).send({ error });
      })(request, reply);

  app.post<OfPayment>("/payments/:id/again", withBody(resend.send));
  app.post<OfPayment>(
    "/payments/:id/curl",
    withBody((operation, body) => ({ curl: resend.describeCurl(operation, body) })),
  );
}

/** At most this much waits for a slow reader; the rest is written once it has caught up. */
const mostUnreadBytes = 262_144;

/** The interval of keep-alive comments for proxies and readers. A reader that took nothing in between is dropped. */
const keepAliveMs = 15_000;

/** An unread stream may hold some 300 KB until it is dropped. */
const mostStreams = 256;

/** A browser opens at most six streams per site, across all its windows. */
const mostPerAddress = 64;

const closeSome = "close streams that are not read any more, or follow one for all readers";

/** `GET /events`: every change of a payment, as Server-Sent Events. A stream ends with its connection or the server. */
function eventRoute(app: FastifyInstance, timeline: Timeline, names: KnownNames): void {
  const streams = new Map<Socket, ServerResponse>();

  /** The reason why a connection cannot have a stream; undefined if it can. */
  function refuse(socket: Socket): { status: 429 | 503; error: string } | undefined {
    if (streams.has(socket)) {
      const error = "This connection has a stream already, which does not end: open another connection";
      return { status: 429, error };
    }
    if (streams.size >= mostStreams) {
      return { status: 503, error: `${mostStreams} streams are open, and no more are served: ${closeSome}` };
    }
    const { remoteAddress } = socket;
    const ofAddress = [...streams.keys()].filter((other) => other.remoteAddress === remoteAddress).length;
    if (ofAddress < mostPerAddress) return undefined;
    const error = `${mostPerAddress} streams to ${remoteAddress} are open, and one address gets no more: ${closeSome}`;
    return { status: 429, error };
  }

  // As a response to HEAD, a stream would never end.
  app.get("/events", { exposeHeadRoute: false }, async (request, reply) => {
    const [parameter] = Object.keys(Object(request.query));
    if (parameter !== undefined) {
      return reply.code(400).send({ error: `There is no parameter ${parameter}` });
    }
    const { socket } = request.raw;
    const refusal = refuse(socket);
    if (refusal !== undefined) {
      return reply.code(refusal.status).header("retry-after", 5).send({ error: refusal.error });
    }
    reply.hijack();
    const response = reply.raw;
    for (const [name, value = ""] of Object.entries(reply.getHeaders())) response.setHeader(name, value);
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    // This opens the stream for readers, even if nothing has happened yet.
    response.flushHeaders();
    // A reader that ended its side has left. Finding out by a failed write could take long.
    socket.once("end", () => response.end());
    const end = streamPayments(response, timeline, names, request.headers["last-event-id"]);
    streams.set(socket, response);
    // A queued response never learns that its connection has closed.
    const closed = () => {
      socket.off("close", closed);
      if (streams.get(socket) === response) streams.delete(socket);
      end();
    };
    socket.once("close", closed);
    response.once("close", closed);
  });

  app.addHook("preClose", async () => {
    for (const response of streams.values()) response.end();
  });
}

/**
 * Writes every change of a payment, starting where the reader left off. A reader that is dropped comes back with its
 * `Last-Event-ID`. Returns a function that ends it.
 */
function streamPayments(
  response: ServerResponse,
  timeline: Timeline,
  names: KnownNames,
  lastEventId: string | string[] | undefined,
): () => void {
  let epoch = timeline.epoch();
  let sent = resumeAt(lastEventId, timeline);
  /** Payments from an earlier run that are still to be sent, oldest first. */
  let earlier: PaymentSummary[] = [];
  /** True if so much waits for the reader that nothing more is written until it has caught up. */
  let isUnread = false;
  /** How many bytes the reader had taken at the last check; undefined if none were waiting then. */
  let takenWhenWaiting: number | undefined;

  function isFull(): boolean {
    if (isUnread) return true;
    if (response.writableLength <= mostUnreadBytes) return false;
    isUnread = true;
    response.once("drain", () => {
      isUnread = false;
      send();
    });
    return true;
  }

  function write(summary: PaymentSummary): void {
    const data = JSON.stringify(summary);
    response.write(`id: ${epoch}.${summary.version}\nevent: payment\ndata: ${data}\n\n`);
  }

  function send(): void {
    if (response.destroyed || isFull()) return;
    // The reader knows nothing yet, or its state is from another epoch.
    if (sent === undefined || epoch !== timeline.epoch()) {
      response.write("event: reset\ndata: {}\n\n");
      sent = 0;
      epoch = timeline.epoch();
      earlier = earlierSummaries(timeline).reverse();
    }
    while (!isFull()) {
      const summary = earlier.shift();
      if (summary === undefined) break;
      write(summary);
    }
    const from = sent;
    const changed = [...timeline.records()].filter(({ version }) => version > from);
    for (const record of changed.sort((a, b) => a.version - b.version)) {
      if (isFull()) return;
      for (const summary of summariesOf([record], names)) write(summary);
      sent = record.version;
    }
  }

  function keepAlive(): void {
    if (response.destroyed) return;
    const waiting = response.writableLength;
    const takenNow = response.socket === null ? 0 : response.socket.bytesWritten - waiting;
    if (waiting > 0 && takenNow === takenWhenWaiting) response.destroy();
    else if (!isUnread) response.write(": still here\n\n");
    takenWhenWaiting = waiting > 0 ? takenNow : undefined;
  }

  send();
  const unsubscribe = timeline.onChange(send);
  const timer = setInterval(keepAlive, keepAliveMs).unref();
  return () => {
    unsubscribe();
    clearInterval(timer);
  };
}

/** The version to resume from; undefined if the reader has to start over. */
function resumeAt(lastEventId: string | string[] | undefined, timeline: Timeline): number | undefined {
  const [, epoch, version] = /^([^.]*)\.(\d{1,15})$/.exec(String(lastEventId ?? "")) ?? [];
  return epoch === timeline.epoch() && Number(version) <= timeline.version() ? Number(version) : undefined;
}
