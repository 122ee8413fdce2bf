import fp from "fastify-plugin";
import { problemDetails } from "../../../protocol/problems.ts";
import { ProblemError } from "../problems/problem-error.ts";

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
