import fp from "fastify-plugin";
import { problemDetails } from "../../../protocol/problems.ts";
import { followExchange, type HttpExchange } from "../connections/exchange.ts";
import { answerHalfClosed, closeFurtherSockets } from "../connections/listen.ts";
import { type ConnectionLimits, createOpenConnections } from "../connections/open-connections.ts";
import { ProblemError } from "../problems/problem-error.ts";
import type { Timeouts } from "../server-options.ts";

declare module "fastify" {
  interface FastifyRequest {
    exchange: HttpExchange;
  }
}

export type ConnectionsOptions = {
  limits: ConnectionLimits | undefined;
  timeouts: Pick<Timeouts, "stalledMs" | "checkMs">;
};

/** How often a closing server looks for connections to close, in milliseconds. */
const closingCheckMs = 100;

/** How long a closing server waits for requests that have arrived in part, and for readers that stalled. */
const closingPatienceMs = 2_000;

/**
 * Follows every connection and what goes over it, bounds their number, and drops those whose peer does not read.
 *
 * A server that closes waits for all of its connections, which clients keep open for minutes: those that carry nothing
 * are closed at once, the others as soon as their last answer is written.
 */
export const connections = fp<ConnectionsOptions>(async (app, { limits, timeouts }) => {
  const open = createOpenConnections(limits);
  app.server.on("connection", (socket) => open.add(socket));
  answerHalfClosed(app.server);

  const check = setInterval(() => open.closeStalled(timeouts.stalledMs), timeouts.checkMs).unref();
  let sweep: NodeJS.Timeout | undefined;
  let closing: Promise<void> | undefined;
  app.addHook("onClose", async () => {
    await closing;
    clearInterval(sweep);
    clearInterval(check);
  });

  app.addHook("preClose", async () => {
    closing = closeFurtherSockets(app.server);
    if (!app.server.listening) return;
    const since = performance.now();
    const closeWhatCan = () => {
      const isLate = performance.now() - since >= closingPatienceMs;
      open.closeIdle({ unfinishedToo: isLate });
      open.closeStalled(Math.min(timeouts.stalledMs, closingPatienceMs));
    };
    closeWhatCan();
    sweep = setInterval(closeWhatCan, closingCheckMs);
  });

  app.decorateRequest("exchange");
  app.addHook("onRequest", (request, reply, done) => {
    request.exchange = followExchange(request.raw, reply.raw);
    done();
  });
});

/** Refuses new payments while the server closes, and asks clients to close the connection after their answer. */
export const refuseWhileClosing = fp(async (app) => {
  let closing = false;

  app.addHook("preClose", async () => {
    closing = true;
  });

  app.addHook("onRequest", (request, _reply, done) => {
    if (closing && request.route.config.operation !== undefined) {
      throw new ProblemError("shuttingDown", problemDetails.shuttingDown, {
        retryAfterSeconds: 1,
      });
    }
    done();
  });

  app.addHook("onSend", (_request, reply, payload, done) => {
    if (closing) reply.header("connection", "close");
    done(null, payload);
  });
});
