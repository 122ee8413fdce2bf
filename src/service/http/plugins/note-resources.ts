import fp from "fastify-plugin";
import type { Catalog } from "../../discovery/catalog.ts";
import { callerOf } from "./authentication.ts";

/** Notes in the catalogue what settled payments were for. */
export const noteResources = fp<{ catalog: Catalog }>(async (app, { catalog }) => {
  app.addHook("onSend", (request, _reply, payload, done) => {
    const { payment, result, body } = request;
    if (payment !== undefined && result?.outcome === "settled") {
      catalog.note(callerOf(request).organization.id, body, payment);
    }
    done(null, payload);
  });
});
