import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { type KnownNames, summariesOf } from "../timeline/record-views.ts";
import type { Timeline } from "../timeline/timeline.ts";

/** No more than this waits for a reader; what follows is written when it has read on. */
const mostUnreadBytes = 262_144;

/** Comment lines that keep proxies and readers from giving up; a reader that took nothing meanwhile is dropped. */
const keepAliveMs = 15_000;

/** A stream that is not read may hold some 300 KB until it is dropped. */
const mostStreams = 256;

/** A browser opens six at most for a site, in all of its windows. */
const mostPerAddress = 64;

const closeSome = "close streams that are not read any more, or follow one for all readers";

/** `GET /events`: every change of a payment, as Server-Sent Events. A stream ends with its connection, or the server. */
export function eventRoute(app: FastifyInstance, timeline: Timeline, names: KnownNames): void {
  const streams = new Map<Socket, ServerResponse>();

  /** Why a connection cannot have a stream; undefined when it can. */
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

  // To HEAD, a stream would never end.
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
    // To readers the stream is open from here on, also where nothing has happened yet.
    response.flushHeaders();
    // A reader that sends no more has left: to find out by what is written to it, there may be nothing for long.
    socket.once("end", () => response.end());
    const end = streamPayments(response, { timeline, names, lastEventId: request.headers["last-event-id"] });
    streams.set(socket, response);
    // A response whose turn never comes does not learn that its connection has closed.
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
 * Writes every change of a payment, from where a reader was on. A reader that is dropped comes back with its
 * `Last-Event-ID`. Gives what ends it.
 */
function streamPayments(
  response: ServerResponse,
  {
    timeline,
    names,
    lastEventId,
  }: { timeline: Timeline; names: KnownNames; lastEventId: string | string[] | undefined },
): () => void {
  let epoch = timeline.epoch();
  let sent = resumeAt(lastEventId, timeline);
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
    // What the reader knows is of another epoch, or nothing.
    if (sent === undefined || epoch !== timeline.epoch()) {
      response.write("event: reset\ndata: {}\n\n");
      sent = 0;
      epoch = timeline.epoch();
    }
    const from = sent;
    const changed = [...timeline.records()].filter(({ version }) => version > from);
    for (const record of changed.sort((a, b) => a.version - b.version)) {
      if (isFull()) return;
      for (const summary of summariesOf([record], names)) {
        const data = JSON.stringify(summary);
        response.write(`id: ${epoch}.${summary.version}\nevent: payment\ndata: ${data}\n\n`);
      }
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

/** The version to go on from; undefined when the reader has to begin anew. */
function resumeAt(lastEventId: string | string[] | undefined, timeline: Timeline): number | undefined {
  const [, epoch, version] = /^([^.]*)\.(\d{1,15})$/.exec(String(lastEventId ?? "")) ?? [];
  return epoch === timeline.epoch() && Number(version) <= timeline.version() ? Number(version) : undefined;
}
