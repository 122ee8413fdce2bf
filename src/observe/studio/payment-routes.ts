import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import type { RefusalContext } from "../explain/explain-refusal.ts";
import type { PaymentRecord } from "../timeline/record.ts";
import { newestSummaries, summariesOf } from "../timeline/summary.ts";
import type { Timeline } from "../timeline/timeline.ts";
import type { PaymentChain } from "./payment-detail.ts";
import { describePayment } from "./payment-detail.ts";
import { mostListed, type PaymentSummary, paymentApiVersion } from "./payment-view.ts";

const limitProblem = `must be a whole number from 1 to ${mostListed}`;

const listQuerySchema = z.strictObject({
  limit: z
    .string(limitProblem)
    .regex(/^[1-9]\d{0,4}$/, limitProblem)
    .transform(Number)
    .refine((limit) => limit <= mostListed, limitProblem)
    .default(100),
});

/** So many payments are written at once. */
const partSize = 100;

/** The answer in parts: of readers that do not read, or ask many times at once, whole lists would take gigabytes. */
function* writeList(payments: readonly PaymentSummary[]): Generator<string> {
  yield `{"apiVersion":${paymentApiVersion},"payments":[`;
  for (let start = 0; start < payments.length; start += partSize) {
    const part = payments.slice(start, start + partSize).map((payment) => JSON.stringify(payment));
    yield `${start === 0 ? "" : ","}${part.join(",")}`;
  }
  yield "]}";
}

/** Names each parameter that is wrong, and those that do not exist: ignored, a typo would go unnoticed. */
function refuseQuery({ issues }: z.ZodError): { error: string } {
  return { error: issues.map(({ path, message }) => [...path, message].join(" ")).join("; ") };
}

/**
 * `GET /payments`, `GET /payments/{id}` and `GET /events`: what a service did about each payment. Where its chains can be
 * asked, `GET /payments/{id}/transaction` as well: the transaction that carried it, decoded.
 */
export function paymentRoutes(
  app: FastifyInstance,
  {
    timeline,
    context,
    chain,
  }: {
    timeline: Timeline;
    context: RefusalContext;
    chain?: PaymentChain | undefined;
  },
): void {
  const streams = createOpenStreams();

  app.get("/payments", async (request, reply) => {
    const { data, error } = listQuerySchema.safeParse(request.query);
    if (error !== undefined) return reply.code(400).send(refuseQuery(error));
    const newest = newestSummaries(timeline, context, data.limit);
    const listed = Readable.from(writeList(newest), { objectMode: false });
    return reply.type("application/json; charset=utf-8").send(listed);
  });

  app.get<{ Params: { id: string } }>("/payments/:id", async (request, reply) => {
    const record = timeline.find(request.params.id.toLowerCase());
    if (record === undefined) {
      return reply.code(404).send({ error: "No request has named this payment, or it is forgotten by now" });
    }
    return { apiVersion: paymentApiVersion, payment: await describePayment(record, context, chain) };
  });

  if (chain !== undefined) {
    const { transaction } = chain;
    app.get<{ Params: { id: string } }>("/payments/:id/transaction", answerFrom(timeline, transaction));
  }

  // To HEAD, a stream would never end.
  app.get("/events", { exposeHeadRoute: false }, async (request, reply) => {
    const { error } = z.strictObject({}).safeParse(request.query);
    if (error !== undefined) return reply.code(400).send(refuseQuery(error));
    const { socket } = request.raw;
    const refusal = streams.refusal(socket);
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
    // To readers the stream is open from here on, also where nothing has happened yet.
    response.flushHeaders();
    // A reader that sends no more has left: to find out by what is written to it, there may be nothing for long.
    socket.once("end", () => response.end());
    const end = streamPayments(response, {
      timeline,
      context,
      lastEventId: request.headers["last-event-id"],
    });
    streams.add(socket, response, end);
  });

  app.addHook("preClose", async () => streams.close());
}

/** Answers a request for something of one payment: 404 where none of its id can be read, 409 where that cannot be had. */
export function answerFrom(
  timeline: Timeline,
  make: (record: PaymentRecord) => Promise<object>,
): (request: FastifyRequest<{ Params: { id: string } }>, reply: FastifyReply) => Promise<object> {
  return async ({ params }, reply) => {
    const record = timeline.find(params.id.toLowerCase());
    if (record?.request === undefined) {
      return reply.code(404).send({ error: "No readable payment of this id was seen here" });
    }
    try {
      return await make(record);
    } catch (error) {
      // What could not be told may be told the next time, and is no answer.
      if (!(error instanceof KitError) || error instanceof UndeterminedError) throw error;
      return reply.code(409).send({ error: error.message, hints: error.hints });
    }
  };
}

/** No more than this waits for a reader; what follows is written when it has read on. */
const mostUnreadBytes = 262_144;

/** Comment lines that keep proxies and readers from giving up; a reader that took nothing meanwhile is dropped. */
const keepAliveMs = 15_000;

/**
 * Writes every change of a payment as Server-Sent Events, from where a reader was on. A reader that is dropped comes back
 * with its `Last-Event-ID`. Gives what ends it.
 */
function streamPayments(
  response: ServerResponse,
  {
    timeline,
    context,
    lastEventId,
  }: { timeline: Timeline; context: RefusalContext; lastEventId: string | string[] | undefined },
): () => void {
  let era = timeline.era();
  let sent = resumeAt(lastEventId, era, timeline.version());
  /** Whether so much waits for the reader that nothing more is written until it has read on. */
  let isUnread = false;
  /** How many bytes it had taken when that was last looked at; undefined when none waited for it then. */
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

  function send(): void {
    if (response.destroyed || isFull()) return;
    // What the reader knows is of another era, or nothing.
    if (sent === undefined || era !== timeline.era()) {
      response.write("event: reset\ndata: {}\n\n");
      sent = 0;
      era = timeline.era();
    }
    for (const record of changedSince(timeline, sent)) {
      if (isFull()) return;
      const [summary] = summariesOf([record], context);
      sent = record.version;
      if (summary === undefined) continue;
      response.write(`id: ${era}.${summary.version}\nevent: payment\ndata: ${JSON.stringify(summary)}\n\n`);
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

/** The records that have changed after a version, in the order of their change. */
function changedSince(timeline: Timeline, version: number): PaymentRecord[] {
  const changed = [...timeline.records()].filter((record) => record.version > version);
  return changed.sort((a, b) => a.version - b.version);
}

/** The version to go on from; undefined when the reader has to begin anew. */
function resumeAt(
  lastEventId: string | string[] | undefined,
  era: string,
  newest: number,
): number | undefined {
  const [, of, version] = /^([^.]*)\.(\d{1,15})$/.exec(String(lastEventId ?? "")) ?? [];
  return of === era && Number(version) <= newest ? Number(version) : undefined;
}

/** A stream that is not read may hold some 300 KB until it is dropped. */
const mostStreams = 256;

/** A browser opens six at most for a site, in all of its windows. */
const mostPerAddress = 64;

/** Why there is no stream more. */
export type StreamRefusal = { status: 429 | 503; error: string };

/** The streams that are open. */
export type OpenStreams = {
  /** Why a connection cannot have a stream; undefined when it can. */
  refusal(socket: Socket): StreamRefusal | undefined;
  /** Counts a stream until its connection or its response closes, and then calls `end`. */
  add(socket: Socket, response: ServerResponse, end: () => void): void;
  /** Has all of them end. */
  close(): void;
};

function createOpenStreams(): OpenStreams {
  const streams = new Map<Socket, ServerResponse>();

  function ofAddress(address: string | undefined): number {
    let count = 0;
    for (const { remoteAddress } of streams.keys()) if (remoteAddress === address) count++;
    return count;
  }

  return {
    refusal(socket) {
      if (streams.has(socket)) {
        return {
          status: 429,
          error: "This connection has a stream already, which does not end: open another connection",
        };
      }
      const closeSome = "close streams that are not read any more, or follow one for all readers";
      if (streams.size >= mostStreams) {
        return {
          status: 503,
          error: `${mostStreams} streams are open, and no more are served: ${closeSome}`,
        };
      }
      if (ofAddress(socket.remoteAddress) < mostPerAddress) return undefined;
      return {
        status: 429,
        error: `${mostPerAddress} streams to ${socket.remoteAddress} are open, and one address gets no more: ${closeSome}`,
      };
    },
    add(socket, response, end) {
      streams.set(socket, response);
      // A response whose turn never comes does not learn that its connection has closed.
      const closed = () => {
        if (streams.get(socket) !== response) return;
        streams.delete(socket);
        end();
      };
      socket.once("close", closed);
      response.once("close", () => {
        socket.off("close", closed);
        closed();
      });
    },
    close() {
      for (const response of streams.values()) response.end();
    },
  };
}
