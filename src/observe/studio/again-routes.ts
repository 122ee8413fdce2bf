import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Operation } from "../../protocol/problems.ts";
import type { RefusalContext } from "../explain/explain-refusal.ts";
import type { PaymentRecord } from "../timeline/record.ts";
import type { Timeline } from "../timeline/timeline.ts";
import { bodyOf } from "./payment-detail.ts";
import { answerFrom } from "./payment-routes.ts";

/** Sends the body of a payment to the service, with the key of the local organization. */
export type Resend = {
  /** Gives the answer. */
  send(operation: Operation, body: Record<string, unknown>): Promise<{ status: number; body: unknown }>;
  /**
   * Everything that the payment was judged by, as `x402-kit replay` reads it.
   *
   * @param keepSignature also where the payer is no test payer: anyone with it can move that payer's money
   */
  capture(record: PaymentRecord, keepSignature: boolean): Promise<object>;
  /** The command for a terminal that does the same. */
  describeCurl(operation: Operation, body: Record<string, unknown>): string;
};

const captureSchema = z.object({ keepSignature: z.boolean().default(false) }).nullish();
const againSchema = z.object({ operation: z.enum(["verify", "settle"]) });

/**
 * `POST /payments/{id}/again`, `/curl` and `/capture`: the same payment once more, as a command, and as a file that holds
 * all it was judged by.
 */
export function againRoutes(
  app: FastifyInstance,
  { timeline, context, resend }: { timeline: Timeline; context: RefusalContext; resend: Resend },
): void {
  const read = ({ params, body }: FastifyRequest<{ Params: { id: string } }>) => {
    const record = timeline.find(params.id.toLowerCase());
    if (record?.request === undefined) {
      return {
        status: 404,
        error: "No payment of this id can be sent again: none that is readable was seen here",
      };
    }
    const asked = againSchema.safeParse(body);
    if (!asked.success) {
      return { status: 400, error: 'The body is to be {"operation":"verify"} or {"operation":"settle"}' };
    }
    return {
      operation: asked.data.operation,
      body: bodyOf(record, record.request, context),
    };
  };

  app.post<{ Params: { id: string } }>("/payments/:id/again", async (request, reply) => {
    const found = read(request);
    if (found.error !== undefined) return reply.code(found.status).send({ error: found.error });
    return resend.send(found.operation, found.body);
  });

  app.post<{ Params: { id: string } }>("/payments/:id/curl", async (request, reply) => {
    const found = read(request);
    if (found.error !== undefined) return reply.code(found.status).send({ error: found.error });
    return { curl: resend.describeCurl(found.operation, found.body) };
  });

  app.post<{ Params: { id: string } }>("/payments/:id/capture", async (request, reply) => {
    const asked = captureSchema.safeParse(request.body);
    if (!asked.success) {
      return reply.code(400).send({ error: 'The body is to be {} or {"keepSignature":true}' });
    }
    const keepSignature = asked.data?.keepSignature ?? false;
    return answerFrom(timeline, (record) => resend.capture(record, keepSignature))(request, reply);
  });
}
