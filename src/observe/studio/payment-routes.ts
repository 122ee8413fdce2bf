import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { RefusalContext } from "../explain/explain-refusal.ts";
import { answerFrom } from "./answer-from.ts";
import { describePayment } from "./describe-payment.ts";
import { createOpenStreams } from "./open-streams.ts";
import type { PaymentChain } from "./payment-chain.ts";
import type { PaymentLog } from "./payment-log.ts";
import { mostListed, type PaymentSummary, paymentApiVersion } from "./payment-view.ts";
import { streamPayments } from "./stream-payments.ts";

const limitProblem = `must be a whole number from 1 to ${mostListed}`;

const listQuerySchema = z.strictObject({
  limit: z
    .string(limitProblem)
    .regex(/^[1-9]\d{0,4}$/, limitProblem)
    .transform(Number)
    .refine((limit) => limit <= mostListed, limitProblem)
    .default(100),
});

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

/** Names each parameter that is wrong, and those that do not exist: ignored, a typo would go unnoticed. */
function refuseQuery({ issues }: z.ZodError): { error: string } {
  return { error: issues.map(({ path, message }) => [...path, message].join(" ")).join("; ") };
}

/**
 * `GET /payments`, `GET /payments/{id}` and `GET /events`: what a service did about each payment. Where its chains can be
 * asked, `GET /payments/{id}/transaction` as well: the transaction that carried it, decoded.
 */
export function paymentRoutes(
  app: FastifyInstance,
  {
    log,
    context,
    chain,
  }: {
    log: PaymentLog;
    context: RefusalContext;
    chain?: PaymentChain | undefined;
  },
): void {
  const streams = createOpenStreams();

  app.get("/payments", async (request, reply) => {
    const { data, error } = listQuerySchema.safeParse(request.query);
    if (error !== undefined) return reply.code(400).send(refuseQuery(error));
    const listed = Readable.from(writeList(log.list().slice(0, data.limit)), { objectMode: false });
    return reply.type("application/json; charset=utf-8").send(listed);
  });

  app.get<{ Params: { id: string } }>("/payments/:id", async (request, reply) => {
    const payment = log.find(request.params.id.toLowerCase());
    if (payment === undefined) {
      return reply.code(404).send({ error: "No request has named this payment, or it is forgotten by now" });
    }
    return { apiVersion: paymentApiVersion, payment: await describePayment(payment, context, chain) };
  });

  if (chain !== undefined) {
    const { transaction } = chain;
    app.get<{ Params: { id: string } }>("/payments/:id/transaction", answerFrom(log, transaction));
  }

  // To HEAD, a stream would never end.
  app.get("/events", { exposeHeadRoute: false }, async (request, reply) => {
    const { error } = z.strictObject({}).safeParse(request.query);
    if (error !== undefined) return reply.code(400).send(refuseQuery(error));
    const { socket } = request.raw;
    const refusal = streams.refusal(socket);
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
    const end = streamPayments(response, { log, lastEventId: request.headers["last-event-id"] });
    streams.add(socket, response, end);
  });

  app.addHook("preClose", async () => streams.close());
}
