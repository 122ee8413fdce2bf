import type { FastifyInstance } from "fastify";
import type { RefusalContext } from "../explain/explain-refusal.ts";
import { againRoutes, type Resend } from "./again-routes.ts";
import { builtPage, pageRoutes } from "./page-routes.ts";
import type { PaymentChain } from "./payment-chain.ts";
import type { PaymentLog } from "./payment-log.ts";
import { paymentRoutes } from "./payment-routes.ts";

export type StudioOptions = {
  log: PaymentLog;
  context: RefusalContext;
  /** Where payments may be sent again; read only without. */
  resend?: Resend | undefined;
  /** Where the chains of payments can be asked. */
  chain?: PaymentChain | undefined;
};

/**
 * `GET /payments`, `GET /payments/{id}`, `GET /events` and the page `GET /studio`: what a local service did about each
 * payment, without signatures or keys. With `resend`, `POST /payments/{id}/again` sends a payment once more, and
 * `POST /payments/{id}/curl` writes it as a command; the caller keeps foreign pages from both.
 */
export async function studioRoutes(
  app: FastifyInstance,
  { log, context, resend, chain }: StudioOptions,
): Promise<void> {
  paymentRoutes(app, { log, context, chain });

  if (resend !== undefined) againRoutes(app, { log, context, resend });

  pageRoutes(app, builtPage);
}
