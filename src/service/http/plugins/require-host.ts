import fp from "fastify-plugin";
import { noHost } from "../../../protocol/unreadable-request.ts";
import { ProblemError } from "../problems/problem-error.ts";

/** Refuses HTTP/1.1 requests without a Host header, as RFC 9112 wants it, with a problem like any other. */
export const requireHost = fp(async (app) => {
  app.addHook("onRequest", ({ raw }, _reply, done) => {
    if (raw.headers.host === undefined && raw.httpVersion === "1.1") {
      throw new ProblemError("malformed", noHost);
    }
    done();
  });
});
