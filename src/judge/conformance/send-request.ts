import https from "node:https";
import type { FixtureAnswer, FixtureRequest } from "../../fixtures/engine/answer.ts";
import { KitError } from "../../util/errors.ts";
import { isObject, joinHeaders, parseJson } from "../../util/json.ts";
import { http } from "../../util/node-http.ts";

/** How an API key is sent: as it is, after “Bearer ”, or not at all. */
export const authKinds = ["bare", "bearer", "none"] as const;

export type Auth = (typeof authKinds)[number];

/** How a facilitator is spoken to. */
export type Access = {
  /** What its paths begin with. */
  prefix: "/v1" | "";
  auth: Auth;
  /** The header that the API key is sent in, in lower case. */
  authHeader: string;
};

/** A request of the table as a facilitator takes it: at its path, with the API key in its place. */
export function adaptRequest(request: FixtureRequest, { prefix, auth, authHeader }: Access): FixtureRequest {
  const { authorization, ...headers } = request.headers;
  const sent = auth === "none" ? undefined : authorization;
  const isBare = auth === "bearer" && sent !== undefined && !sent.includes(" ");
  return {
    ...request,
    path: request.path.replace(/^\/v1/, prefix),
    headers: { ...headers, ...(sent !== undefined && { [authHeader]: isBare ? `Bearer ${sent}` : sent }) },
  };
}

/** Longer than the 90 seconds that public clients wait for a settle. */
const defaultTimeoutMs = 100_000;

/**
 * Sends a request with exactly its headers, and classifies the result: an answer, part of one, or none. Each request
 * has its own connection, so a broken one affects no other.
 *
 * @param baseUrl without `/v1`, which the request's path begins with
 * @throws {KitError} when nothing listens there, or the answer takes too long
 */
export async function sendRequest(
  baseUrl: string,
  request: FixtureRequest,
  timeoutMs = defaultTimeoutMs,
): Promise<FixtureAnswer> {
  const { method, path, headers, body } = request;
  const { promise, resolve, reject } = Promise.withResolvers<FixtureAnswer>();
  const { request: send } = baseUrl.startsWith("https:") ? https : http;
  const signal = AbortSignal.timeout(timeoutMs);
  let answered = false;
  const outgoing = send(`${baseUrl}${path}`, { method, headers, agent: false, signal }, (response) => {
    answered = true;
    const chunks: Buffer[] = [];
    const head = { status: response.statusCode ?? 0, headers: joinHeaders(response.headers) };
    const text = () => Buffer.concat(chunks).toString("utf8");
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("error", (cause) => {
      if (signal.aborted) reject(noAnswer(baseUrl, cause));
      else resolve({ kind: "cut_off", ...head, text: text() });
    });
    response.on("end", () => resolve(readAnswer(head, text())));
  });
  outgoing.on("error", (cause) => {
    // Whether the answer is complete is decided by the answer itself.
    if (answered) return;
    if (wasReset(cause)) resolve({ kind: "reset" });
    else reject(noAnswer(baseUrl, cause));
  });
  outgoing.end(body);
  return promise;
}

function readAnswer(head: { status: number; headers: Record<string, string> }, text: string): FixtureAnswer {
  if (/\bjson\b/.test(head.headers["content-type"] ?? "")) {
    const body = parseJson(text);
    if (isObject(body)) return { kind: "json", ...head, body };
  }
  return { kind: "text", ...head, text };
}

/** Whether a server had accepted the connection before it broke. */
function wasReset(error: Error): boolean {
  return "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");
}

function noAnswer(baseUrl: string, cause: unknown): KitError {
  return new KitError(`No answer from ${baseUrl}`, { cause });
}
