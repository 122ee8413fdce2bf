import type { RequestHandler, Response } from "express";

/** A paid answer that the buyer did not receive. */
type Owed = { status: number; headers: Record<string, string>; body: Buffer; since: number };

/** The header that carries a payment. */
const paymentHeader = "PAYMENT-SIGNATURE";

/** How long an answer is kept: longer than any payment is valid. */
const keptMs = 3_600_000;

/**
 * Keeps an answer whose buyer was gone before it could be written, and gives it to the same payment for the same thing
 * when it comes again. Without it such a buyer has paid for nothing: the payment is settled, and cannot be settled
 * again. It stands before the payment middleware, since that would ask for a new payment.
 */
export function redeliver(): RequestHandler {
  const owed = new Map<string, Owed>();
  return (request, response, next) => {
    const payment = request.get(paymentHeader);
    if (payment === undefined) return next();
    const key = `${request.method} ${request.originalUrl} ${payment}`;
    keepUndelivered(response, (answer) => owed.set(key, answer));
    forgetOld(owed);
    const answer = owed.get(key);
    if (answer === undefined) return next();
    owed.delete(key);
    response.status(answer.status).set(answer.headers).end(answer.body);
  };
}

/** Calls back with a good answer that is ended when the connection is gone. */
function keepUndelivered(response: Response, keep: (answer: Owed) => void): void {
  const parts: Buffer[] = [];
  const take = (part: unknown) => {
    if (typeof part === "string" || part instanceof Uint8Array) parts.push(Buffer.from(part));
  };
  const { write, end } = response;
  response.write = (...args: unknown[]) => {
    take(args[0]);
    return Reflect.apply(write, response, args);
  };
  response.end = (...args: unknown[]) => {
    take(args[0]);
    if (response.closed && response.statusCode === 200) {
      const headers = Object.fromEntries(
        Object.entries(response.getHeaders()).map(([name, value]) => [name, String(value)]),
      );
      keep({ status: 200, headers, body: Buffer.concat(parts), since: Date.now() });
    }
    return Reflect.apply(end, response, args);
  };
}

function forgetOld(owed: Map<string, Owed>): void {
  for (const [key, { since }] of owed) {
    // In the order in which they were kept.
    if (Date.now() - since < keptMs) return;
    owed.delete(key);
  }
}
