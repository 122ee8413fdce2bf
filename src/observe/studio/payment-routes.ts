import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Operation } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import type { RefusalContext } from "../explain/explanations.ts";
import type { PaymentRecord } from "../timeline/record.ts";
import { newestSummaries } from "../timeline/record-views.ts";
import type { Timeline } from "../timeline/timeline.ts";
import { eventRoute } from "./event-streams.ts";
import { bodyOf, describePayment, type PaymentChain } from "./payment-detail.ts";
import { mostListed, type PaymentSummary, paymentApiVersion } from "./payment-view.ts";

export type PaymentRouteOptions = {
  timeline: Timeline;
  context: RefusalContext;
  /** Where the chains of payments can be asked. */
  chain?: PaymentChain | undefined;
};

const limitProblem = `must be a whole number from 1 to ${mostListed}`;

const listQuerySchema = z.strictObject({
  limit: z
    .string(limitProblem)
    .regex(/^[1-9]\d{0,4}$/, limitProblem)
    .transform(Number)
    .refine((limit) => limit <= mostListed, limitProblem)
    .default(100),
});

/**
 * `GET /payments`, `GET /payments/{id}` and `GET /events`: what a service did about each payment. Where its chains can be
 * asked, `GET /payments/{id}/transaction` as well: the transaction that carried it, decoded.
 */
export function paymentRoutes(app: FastifyInstance, { timeline, context, chain }: PaymentRouteOptions): void {
  app.get("/payments", async (request, reply) => {
    const { data, error } = listQuerySchema.safeParse(request.query);
    if (error !== undefined) {
      // Each parameter that is wrong, and those that do not exist: ignored, a typo would go unnoticed.
      const problems = error.issues.map(({ path, message }) => [...path, message].join(" "));
      return reply.code(400).send({ error: problems.join("; ") });
    }
    const listed = writeList(newestSummaries(timeline, context, data.limit));
    return reply.type("application/json; charset=utf-8").send(Readable.from(listed, { objectMode: false }));
  });

  app.get<OfPayment>("/payments/:id", async ({ params }, reply) => {
    const record = timeline.find(params.id.toLowerCase());
    if (record === undefined) {
      return reply.code(404).send({ error: "No request has named this payment, or it is forgotten by now" });
    }
    return { apiVersion: paymentApiVersion, payment: await describePayment(record, context, chain) };
  });

  if (chain !== undefined) {
    app.get<OfPayment>("/payments/:id/transaction", answerFrom(timeline, chain.transaction));
  }

  eventRoute(app, timeline, context);
}

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

type OfPayment = { Params: { id: string } };

/** Answers a request for something of one payment: 404 where none of its id can be read, 409 where that cannot be had. */
export function answerFrom(
  timeline: Timeline,
  make: (record: PaymentRecord, request: PaymentRequest) => Promise<object>,
): (request: FastifyRequest<OfPayment>, reply: FastifyReply) => Promise<object> {
  return async ({ params }, reply) => {
    const record = timeline.find(params.id.toLowerCase());
    if (record?.request === undefined) {
      return reply.code(404).send({ error: "No readable payment of this id was seen here" });
    }
    try {
      return await make(record, record.request);
    } catch (error) {
      // What could not be found out may be the next time, and is no answer.
      if (!(error instanceof KitError) || error instanceof UndeterminedError) throw error;
      return reply.code(409).send({ error: error.message, hints: error.hints });
    }
  };
}

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
  { timeline, context, resend }: PaymentRouteOptions & { resend: Resend },
): void {
  const withBody =
    (make: (operation: Operation, body: Record<string, unknown>) => object | Promise<object>) =>
    (request: FastifyRequest<OfPayment>, reply: FastifyReply): Promise<object> =>
      answerFrom(timeline, async (record, payment) => {
        const { data } = againSchema.safeParse(request.body);
        if (data !== undefined) return make(data.operation, bodyOf(record, payment, context));
        const error = 'The body is to be {"operation":"verify"} or {"operation":"settle"}';
        return reply.code(400).send({ error });
      })(request, reply);

  app.post<OfPayment>("/payments/:id/again", withBody(resend.send));
  app.post<OfPayment>(
    "/payments/:id/curl",
    withBody((operation, body) => ({ curl: resend.describeCurl(operation, body) })),
  );
  app.post<OfPayment>("/payments/:id/capture", async (request, reply) => {
    const asked = captureSchema.safeParse(request.body);
    if (!asked.success) {
      return reply.code(400).send({ error: 'The body is to be {} or {"keepSignature":true}' });
    }
    const keepSignature = asked.data?.keepSignature ?? false;
    return answerFrom(timeline, (record) => resend.capture(record, keepSignature))(request, reply);
  });
}
