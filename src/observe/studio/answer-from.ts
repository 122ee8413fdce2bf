import type { FastifyReply, FastifyRequest } from "fastify";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import type { LoggedPayment, PaymentLog } from "./payment-log.ts";

/** Answers a request for something of one payment: 404 where none of its id can be read, 409 where that cannot be had. */
export function answerFrom(
  log: PaymentLog,
  make: (payment: LoggedPayment) => Promise<object>,
): (request: FastifyRequest<{ Params: { id: string } }>, reply: FastifyReply) => Promise<object> {
  return async ({ params }, reply) => {
    const payment = log.find(params.id.toLowerCase());
    if (payment?.request === undefined) {
      return reply.code(404).send({ error: "No readable payment of this id was seen here" });
    }
    try {
      return await make(payment);
    } catch (error) {
      // What could not be told may be told the next time, and is no answer.
      if (!(error instanceof KitError) || error instanceof UndeterminedError) throw error;
      return reply.code(409).send({ error: error.message, hints: error.hints });
    }
  };
}
