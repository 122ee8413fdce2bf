import type { FastifyInstance } from "fastify";
import type { RefusalContext } from "../explain/explain-refusal.ts";
import type { Resend } from "./again-routes.ts";
import type { PaymentChain } from "./payment-chain.ts";
import { createPaymentLog } from "./payment-log.ts";
import type { PaymentStore } from "./payment-store.ts";
import { studioRoutes } from "./studio-routes.ts";

export { describeStudioApi } from "./studio-api.ts";

/** Serves what a store knows of payments, and the page that shows it, beside the service. */
export function serveStudio(
  app: FastifyInstance,
  {
    store,
    resend,
    chain,
    ...context
  }: { store: PaymentStore; resend?: Resend; chain?: PaymentChain } & RefusalContext,
): void {
  const log = createPaymentLog(store, context);
  app.register(async (scope) => studioRoutes(scope, { log, context, resend, chain }));
  app.addHook("onClose", async () => log.close());
}
