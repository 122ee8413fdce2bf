import type { FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import type { ReceivedBody, RequestResult } from "../../../observe/channels/channels.ts";
import { describeReceived, mostReceived } from "../../../observe/channels/channels.ts";
import { findJsonProblem } from "../../../protocol/json-problem.ts";
import { bodyLimit, problemDetails, problemKinds } from "../../../protocol/problems.ts";
import { shortenPath } from "../../../protocol/routes.ts";
import { ProblemError } from "../problems/problem-error.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The part of the body received so far; undefined before any of it was read. */
    receivedBytes: ReceivedBytes | undefined;
  }
}

/** `isWhole` is true once the body has ended; then `text` is set if it was read. */
type ReceivedBytes = { chunks: Buffer[]; length: number; isWhole: boolean; text?: string };

/** How long to wait for a refused body, in milliseconds, so that people can be shown what it was. */
const peekMs = 200;

/** Reads JSON bodies like Fastify, and keeps what was received of bodies that cannot be read. */
export const readBodies = fp(async (app) => {
  app.decorateRequest("receivedBytes", undefined);
  app.removeContentTypeParser("text/plain");
  const parse = app.getDefaultJsonParser("error", "error");

  app.addContentTypeParser("application/json", (request, payload, done) => {
    const announced = Number(request.headers["content-length"]);
    if (announced > bodyLimit) return done(new ProblemError("tooLarge", problemDetails.tooLarge));
    const received: ReceivedBytes = { chunks: [], length: 0, isWhole: false };
    request.receivedBytes = received;

    function end(error: Error | null, body?: unknown): void {
      payload.off("data", take).off("end", read).off("error", cut);
      done(error, body);
    }
    function take(chunk: Buffer): void {
      received.length += chunk.length;
      received.chunks.push(chunk);
      if (received.length > bodyLimit) end(new ProblemError("tooLarge", problemDetails.tooLarge));
    }
    const cut = () => end(new ProblemError("malformed", describeCut(received.length, announced)));
    function read(): void {
      if (!Number.isNaN(announced) && received.length !== announced) {
        cut();
        return;
      }
      received.isWhole = true;
      const text = textOf(received);
      received.text = text;
      if (text === "") end(new ProblemError("malformed", problemDetails.empty));
      else parse(request, text, (error, body) => end(error && unreadable(request, text), body));
    }
    payload.on("data", take).on("end", read).on("error", cut).resume();
  });
});

function describeCut(received: number, announced: number): string {
  const all = Number.isNaN(announced) ? "" : ` of ${announced}`;
  return `The body was cut off: the connection ended after ${received}${all} bytes`;
}

/** The reason why a request whose connection has ended got no answer, if its body was cut off. */
export function cutOffBody({
  receivedBytes: received,
  headers,
}: FastifyRequest): Pick<RequestResult, "reason" | "message"> {
  if (received === undefined || received.isWhole) return {};
  const message = describeCut(received.length, Number(headers["content-length"]));
  return { reason: problemKinds.malformed.name, message };
}

/**
 * The problem with text that is not valid JSON: the position of the error. Nothing is quoted, since it may contain a
 * secret. Compressed bodies are not inspected.
 */
function unreadable({ headers }: FastifyRequest, text: string): ProblemError {
  const encoding = headers["content-encoding"];
  const problem = findJsonProblem(text);
  if (problem === undefined) return new ProblemError("malformed", problemDetails.poisoned);
  const { line, column } = problem;
  if (encoding === undefined) return new ProblemError("malformed", problemDetails.notJson(line, column));
  return new ProblemError("mediaType", problemDetails.contentEncoding(shortenPath(encoding)));
}

function textOf({ chunks, text }: ReceivedBytes): string {
  if (text !== undefined) return text;
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only.toString() : Buffer.concat(chunks).toString();
}

/** The received body of a request, for display; undefined if there is none. */
export function receivedBody(request: FastifyRequest): ReceivedBody | undefined {
  const { receivedBytes: received, headers } = request;
  if (received === undefined || received.length === 0) return undefined;
  const contentType = headers["content-type"];
  const { length: bytes, isWhole } = received;
  return describeReceived(textOf(received), { bytes, isWhole, contentType });
}

/** Reads the beginning of a body that is refused unread. Never fails, and ends soon. */
export function peekAtBody(request: FastifyRequest): Promise<void> {
  const { raw } = request;
  if (request.receivedBytes !== undefined || raw.readableEnded || raw.destroyed) return Promise.resolve();
  const received: ReceivedBytes = { chunks: [], length: 0, isWhole: false };
  request.receivedBytes = received;
  const { promise, resolve } = Promise.withResolvers<void>();
  const take = (chunk: Buffer) => {
    received.length += chunk.length;
    received.chunks.push(chunk);
    if (received.length >= mostReceived) resolve();
  };
  const end = () => {
    received.isWhole = true;
    resolve();
  };
  const timer = setTimeout(resolve, peekMs);
  raw.on("data", take).on("end", end).on("close", resolve);
  return promise.finally(() => {
    clearTimeout(timer);
    raw.off("data", take).off("end", end).off("close", resolve);
  });
}
