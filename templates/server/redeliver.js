/** How long an answer is kept: longer than a payment is valid. */
const keptMs = 3_600_000;

/**
 * Wraps the request listener of a Node server. It keeps a paid answer that its buyer was not there to get, and gives it to the
 * same payment when it comes again. Otherwise that buyer has paid for nothing: a payment cannot be settled twice.
 *
 * Answers are kept in memory. Several processes of one shop need a store that they share.
 */
export function redeliver(listener) {
  const owed = new Map();
  return (request, response) => {
    const payment = request.headers["payment-signature"] ?? request.headers["x-payment"];
    if (payment === undefined) return listener(request, response);
    const key = `${request.method} ${request.url} ${payment}`;
    keepUndelivered(response, (answer) => owed.set(key, answer));
    for (const [old, { since }] of owed) if (Date.now() - since > keptMs) owed.delete(old);
    const answer = owed.get(key);
    if (answer === undefined) return listener(request, response);
    owed.delete(key);
    response.writeHead(answer.status, answer.headers).end(answer.body);
  };
}

/** Calls back with an answer that has a receipt, if its connection was closed before all of it was sent. */
function keepUndelivered(response, keep) {
  const parts = [];
  const take = (part) => {
    if (typeof part === "string" || part instanceof Uint8Array) parts.push(Buffer.from(part));
  };
  const { writeHead, write, end } = response;
  Object.assign(response, {
    writeHead(status, ...rest) {
      for (const [name, value] of Object.entries(Object(rest.at(-1)))) response.setHeader(name, value);
      return writeHead.call(response, status);
    },
    write(...args) {
      take(args[0]);
      return write.apply(response, args);
    },
    end(...args) {
      take(args[0]);
      const { statusCode: status } = response;
      // Without a receipt nothing was paid, whatever the request says: anyone could fill the memory.
      const isPaid =
        status < 300 && (response.hasHeader("payment-response") || response.hasHeader("x-payment-response"));
      const answer = {
        status,
        headers: response.getHeaders(),
        body: Buffer.concat(parts),
        since: Date.now(),
      };
      const keepUnlessSent = () => {
        if (isPaid && !response.writableFinished) keep(answer);
      };
      if (response.closed) keepUnlessSent();
      else response.once("close", keepUnlessSent);
      return end.apply(response, args);
    },
  });
}
