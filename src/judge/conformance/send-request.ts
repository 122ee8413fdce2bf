import type { FixtureAnswer, FixtureRequest } from "../../fixtures/engine/answer.ts";
import { KitError } from "../../util/errors.ts";
import { type HttpAnswer, HttpFailure, sendHttp } from "../../util/http-client.ts";
import { isObject, parseJson } from "../../util/json.ts";

/** How an API key is sent: bare, after "Bearer ", or not at all. */
export const authKinds = ["bare", "bearer", "none"] as const;

export type Auth = (typeof authKinds)[number];

export type Access = {
  prefix: "/v1" | "";
  auth: Auth;
  /** The header for the API key, in lower case. */
  authHeader: string;
};

/** Adapts a scenario's request to a facilitator's path prefix and API key header. */
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

/** Longer than the 90 seconds that public clients wait for a settlement. */
const defaultTimeoutMs = 100_000;

/**
 * Sends a request with exactly its headers, and classifies the result: a response, part of one, or none. Each request
 * has its own connection, so a broken one affects no other.
 *
 * @param baseUrl without the prefix that the request's path begins with
 * @throws {KitError} if nothing listens there, or the response takes too long
 */
export async function sendRequest(
  baseUrl: string,
  request: FixtureRequest,
  timeoutMs = defaultTimeoutMs,
): Promise<FixtureAnswer> {
  const { method, path, headers, body } = request;
  try {
    const answer = await sendHttp(`${baseUrl}${path}`, { method, headers, body, timeoutMs, agent: false });
    return readAnswer(answer);
  } catch (error) {
    const { code, partial, cause = error } = error instanceof HttpFailure ? error : {};
    if (partial !== undefined) return { kind: "cut_off", ...partial };
    // The server had accepted the connection before it broke.
    if (code === "ECONNRESET" || code === "EPIPE") return { kind: "reset" };
    throw new KitError(`No answer from ${baseUrl}`, { cause });
  }
}

function readAnswer({ status, headers, text }: HttpAnswer): FixtureAnswer {
  const head = { status, headers };
  if (/\bjson\b/.test(headers["content-type"] ?? "")) {
    const body = parseJson(text);
    if (isObject(body)) return { kind: "json", ...head, body };
  }
  return { kind: "text", ...head, text };
}
