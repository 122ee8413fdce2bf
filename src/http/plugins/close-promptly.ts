import fp from "fastify-plugin";
import { problemDetails } from "../../protocol/problems.ts";
import { ProblemError } from "../problems/problem-error.ts";

/** How often connections are closed that have nothing more to carry, in milliseconds. */
const sweepMs = 100;

/**
 * Lets the server close as soon as its last answer is written, and no later. Clients keep connections open for minutes,
 * and Node closes only those that carry nothing in the moment it is asked to: one whose answer was still to come would
 * hold up the end. New payments that arrive on open connections meanwhile are refused.
 */
export const closePromptly = fp(async (app) => {
  let closing = false;

  app.addHook("preClose", async () => {
    closing = true;
    if (!app.server.listening) return;
    const sweep = setInterval(() => app.server.closeIdleConnections(), sweepMs);
    app.server.once("close", () => clearInterval(sweep));
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
