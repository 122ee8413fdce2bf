import { isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import { isLoopbackHost } from "../../../config/values.ts";

/** Addresses that mean every one of the machine. */
const wildcards: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** The address that a server was asked to listen on, and names besides it that callers may use for it. */
export type Listening = { host: string; allowHosts?: readonly string[] | undefined };

/**
 * Answers 403 to requests of web pages on the routes of this scope: those whose `Origin` is neither of this machine nor
 * of the address listened on, and those whose `Host` is a foreign name, which a page gets there by DNS
 * rebinding. Without it every page in a browser on this machine could act here. Programs send no `Origin`.
 *
 * Where the server listens on every address (0.0.0.0), callers may name any IP address, but no name besides `localhost`
 * and those that were allowed.
 */
export function refuseForeign(scope: FastifyInstance, listening: Listening): void {
  scope.addHook("onRequest", (request, reply, done) => {
    const problem = foreign(request.headers, listening);
    if (problem === undefined) return done();
    reply.code(403).send(describeRefusal(problem, listening));
  });
}

/** The body of the answer to a request that {@link foreign} has a problem with. */
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

/** What gives a request away as another site's; undefined when nothing does. */
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

/** A name or address with or without a port, and nothing else of a URL, such as a user, path or fragment. */
const isHost = /^[\w.:[\]-]+$/;

/** The host of a URL in lower case, an IPv6 address without its brackets. */
function hostnameOf(url: string): string | undefined {
  return URL.parse(url)?.hostname.replace(/^\[|\]$/g, "");
}

function quote(text: string | undefined): string {
  return text === undefined ? "nothing" : JSON.stringify(text.slice(0, 100));
}
