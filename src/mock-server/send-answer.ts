import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type FixtureAnswer, isBegun } from "../fixtures/engine/answer.ts";

/**
 * Sends what the fixtures answer, on the wire: late, whole, in part, or not at all.
 *
 * @param base what the paths of the facilitator begin with, so that its `Location` leads back to it
 */
export async function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  answered: FixtureAnswer,
  base: string,
): Promise<FastifyReply> {
  const answer = relocate(answered, base);
  // Unreferenced: a late answer does not keep the process alive.
  if (answer.delayMs !== undefined) await sleep(answer.delayMs, undefined, { ref: false });
  switch (answer.kind) {
    case "reset":
      reply.hijack();
      request.raw.socket.resetAndDestroy();
      return reply;
    case "never":
      // The connection is the client's to end, or the server's when it closes.
      return reply.hijack();
    case "cut_off":
      return sendPart(reply, answer);
    case "json":
      return reply.code(answer.status).headers(answer.headers).send(JSON.stringify(answer.body));
    case "text":
      return reply.code(answer.status).headers(answer.headers).send(answer.text);
  }
}

/** The length of the whole, the beginning, and the end of the connection. */
function sendPart(reply: FastifyReply, answer: Extract<FixtureAnswer, { kind: "cut_off" }>): FastifyReply {
  const { status, headers, text } = answer;
  const length = answer.wholeBytes ?? 2 * Buffer.byteLength(text) + 1;
  reply.headers({ ...headers, "content-length": length });
  reply.hijack();
  const { raw } = reply;
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) raw.setHeader(name, value);
  }
  raw.writeHead(status);
  // Ended, not reset: after a reset the receiver's system may throw away what it had not read yet.
  raw.write(text, () => raw.socket?.end());
  return reply;
}

function relocate(answer: FixtureAnswer, base: string): FixtureAnswer {
  if (!isBegun(answer) || base === "" || answer.headers.location === undefined) return answer;
  return { ...answer, headers: { ...answer.headers, location: `${base}${answer.headers.location}` } };
}
