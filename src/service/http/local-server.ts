import { once } from "node:events";
import { createServer, isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { problemDetails } from "../../protocol/problems.ts";
import type { CorsOrigins } from "../../protocol/routes.ts";
import { KitError } from "../../util/errors.ts";
import { isLoopbackHost } from "../../util/loopback.ts";
import { createNowAndThen } from "../../util/now-and-then.ts";
import { escapeControls } from "../../util/text.ts";

/** Addresses that stand for every address of the machine. */
const wildcards: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** The address that a server listens on, and other names that callers may use for it. */
export type Listening = { host: string; allowHosts?: readonly string[] | undefined };

/**
 * Answers 403 to requests of foreign web pages on the routes of this scope: if `Origin` is neither this machine nor the
 * address listened on, or if `Host` is a foreign name, as after DNS rebinding. Without this, every page in a browser on
 * this machine could act here. Programs send no `Origin`.
 *
 * If the server listens on every address (0.0.0.0), callers may use any IP address, but no name except `localhost` and
 * the allowed ones.
 */
export function refuseForeign(scope: FastifyInstance, listening: Listening): void {
  scope.addHook("onRequest", (request, reply, done) => {
    const problem = foreign(request.headers, listening);
    if (problem === undefined) return done();
    reply.code(403).send(describeRefusal(problem, listening));
  });
}

/**
 * {@link refuseForeign} for the facilitator's own routes, if the server listens on a loopback address only: otherwise a
 * page could settle payments by DNS rebinding. Pages of `corsOrigins` may call them.
 */
export function refuseForeignOnLoopback(
  app: FastifyInstance,
  { corsOrigins, ...listening }: Listening & { corsOrigins?: CorsOrigins | undefined },
): void {
  if (!isLoopbackHost(listening.host)) return;
  const nowAndThen = createNowAndThen();
  app.addHook("onRequest", (request, reply, done) => {
    const { host, origin } = request.headers;
    // Browsers always send it; programs using HTTP/1.0 may not.
    if (host === undefined) return done();
    const isAllowed = origin !== undefined && (corsOrigins === "*" || corsOrigins?.includes(origin));
    const problem = foreign(isAllowed ? { host } : { host, origin }, listening);
    if (problem === undefined) return done();
    const refusal = describeRefusal(problem, listening);
    const isOfPage = foreign({ host }, listening) === undefined && URL.parse(origin ?? "")?.origin === origin;
    if (!isOfPage || !isOfFacilitator.test(request.url)) return reply.code(403).send(refusal);
    const advice = `pages of ${origin} may pay here with --cors-origins ${origin}`;
    nowAndThen(() => request.log.warn(`${request.method} of a web page was refused: ${advice}`));
    reply.code(403).send({ ...refusal, hints: [advice] });
  });
}

/** The paths that pages can be allowed to call. */
const isOfFacilitator = /^(\/v1)?\/(verify|settle|supported)\b/;

/** The body of the answer to a request that {@link foreign} objects to. */
export function describeRefusal(problem: string, { host, allowHosts = [] }: Listening) {
  const names = [...new Set([host, "localhost", "127.0.0.1", ...allowHosts])].join(", ");
  return {
    error: `Refused: ${problem}`,
    because: [],
    hints: [
      problem.startsWith("the Origin")
        ? `Only programs, and pages served from ${names}, may call this. Pages of another host are allowed by --allow-host NAME.`
        : `Ask for it as ${names}. Another name, such as a container's, is allowed by --allow-host NAME.`,
    ],
  };
}

/** The reason to refuse a request as another site's; undefined if it comes from this machine. */
export function foreign(
  { host: named, origin }: { host?: string | undefined; origin?: string | undefined },
  { host, allowHosts = [] }: Listening,
): string | undefined {
  const isOurs = (hostname: string | undefined) => {
    if (hostname === undefined) return false;
    if (isLoopbackHost(hostname) || hostname === host.toLowerCase()) return true;
    if (allowHosts.some((name) => name.toLowerCase() === hostname)) return true;
    return wildcards.has(host) && isIP(hostname) !== 0;
  };
  const isNamed = named !== undefined && isHost.test(named) && isOurs(hostnameOf(`http://${named}`));
  if (!isNamed) return `the Host header names ${quote(named)}`;
  if (origin !== undefined && !isOurs(hostnameOf(origin))) return `the Origin header is ${quote(origin)}`;
  return undefined;
}

/** A name or address with an optional port, without other parts of a URL such as a user, path or fragment. */
const isHost = /^[\w.:[\]-]+$/;

/** The host of a URL in lower case, an IPv6 address without brackets. */
function hostnameOf(url: string): string | undefined {
  return URL.parse(url)?.hostname.replace(/^\[|\]$/g, "");
}

function quote(text: string | undefined): string {
  return text === undefined ? "nothing" : JSON.stringify(text.slice(0, 100));
}

/**
 * Listens on a port and stops again, so that a start fails before anything else is started.
 *
 * @throws {KitError} when it cannot listen there: see {@link explainListenError}
 */
export async function requireFree(host: string, port: number): Promise<void> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, "listening");
  } catch (error) {
    throw explainListenError(error, host, port);
  }
  server.close();
  await once(server, "close");
}

/** Turns an error of `listen` into one with advice; returns other errors as they are. */
export function explainListenError(
  error: unknown,
  host: string,
  port: number,
  command = "x402-kit up",
): unknown {
  if (!(error instanceof Error) || !("code" in error)) return error;
  const anyPort = "Choose another by --port or PORT (in a program, by the option port); 0 is any free one.";
  switch (error.code) {
    case "EADDRINUSE":
      return new KitError(`Port ${port} on ${host} is in use`, {
        code: "port-in-use",
        hints: [`Stop what listens there; if it is ${command}, use it as it is.`, anyPort],
      });
    case "EACCES":
      return new KitError(`Port ${port} on ${host} may not be used without more rights`, {
        hints: [anyPort],
      });
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new KitError(`${escapeControls(host)} is not an address of this machine`, {
        hints: ["Leave the host out to listen on 127.0.0.1; 0.0.0.0 is every address."],
      });
    default:
      return error;
  }
}

/** The mistake in a request to a control route; undefined for any other error. */
export function controlRefusal(error: unknown): { status: number; message: string } | undefined {
  if (error instanceof z.ZodError) return { status: 400, message: describeIssues(error) };
  const status: unknown = Reflect.get(Object(error), "statusCode");
  switch (status) {
    case 400:
      return { status, message: isEmpty(error) ? empty : notRead };
    case 413:
      return { status, message: "The body is too large" };
    case 415:
      return { status, message: problemDetails.mediaType };
    default:
      return undefined;
  }
}

const notRead = "The body is not JSON, or has a member __proto__ or constructor.prototype, which is refused";
const empty = "The body is empty: send a JSON object, such as {}";

/** Recognizes Fastify's error for an empty body. */
function isEmpty(error: unknown): boolean {
  return Reflect.get(Object(error), "code") === "FST_ERR_CTP_EMPTY_JSON_BODY";
}

/** Lists each invalid field and what is wrong with it. */
function describeIssues(error: z.ZodError): string {
  return error.issues
    .map((issue) => `${issue.path.length === 0 ? "The body" : issue.path.join(".")}: ${sentenceOf(issue)}`)
    .join("; ");
}

const kinds: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  string: "a string",
};

/** The text for an issue, if the schema does not define one. */
function sentenceOf(issue: z.core.$ZodIssue): string {
  // Texts from our schemas begin with a lowercase letter.
  if (/^[a-z]/.test(issue.message)) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "unrecognized_keys":
      return `there is no ${issue.keys.map((key) => JSON.stringify(key)).join(" and no ")} here`;
    case "invalid_union":
      return issue.errors
        .flatMap(([first]) => (first === undefined ? [] : [sentenceOf(first)]))
        .join(", or ");
    case "too_small":
      return `must ${has(issue.origin)} at least ${issue.minimum}`;
    case "too_big":
      return `must ${has(issue.origin)} at most ${issue.maximum}`;
    case "invalid_format":
      return issue.format === "datetime" ? "must be a time such as 2026-01-31T12:00:00Z" : issue.message;
    default:
      return issue.message;
  }
}

function has(origin: string): string {
  if (origin === "string") return "have a length of";
  return origin === "array" ? "have a number of entries of" : "be";
}

/** A route of a local server in addition to the facilitator's, for the OpenAPI document. */
export type LocalRoute = {
  /** `operationId`, from which clients are generated. */
  id: string;
  summary: string;
  /** The JSON body that the route reads. */
  body?: z.ZodType;
  /** A short description of the answer. */
  answer: string;
  answerSchema?: object;
  status?: 200 | 204;
};

/** The paths of an OpenAPI document, from routes by method and path, such as `POST /__scenario`. */
export function describeRoutes(routes: Readonly<Record<string, LocalRoute>>): Record<string, object> {
  const paths: Record<string, object> = {};
  for (const [route, described] of Object.entries(routes)) {
    const [method = "", path = ""] = route.split(" ");
    paths[path] = { ...paths[path], [method.toLowerCase()]: operationOf(path, described) };
  }
  return paths;
}

function operationOf(path: string, { id, summary, body, answer, answerSchema, status = 200 }: LocalRoute) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const json = (schema: object) => ({ content: { "application/json": { schema } } });
  const parameters = names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
  const isEmpty = status === 204;
  return {
    operationId: id,
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: { required: true, ...json(z.toJSONSchema(body, { io: "input", unrepresentable: "any" })) },
    }),
    responses: {
      [status]: { description: answer, ...(!isEmpty && json(answerSchema ?? {})) },
      "400": { description: "The request is wrong: `error` says why, and `hints` what to do" },
    },
  };
}
