import { isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import { isLoopbackHost } from "../config/values.ts";

/** Addresses that mean every one of the machine. */
const wildcards: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/**
 * Answers 403 to requests of web pages on the routes of this scope: those whose `Origin` is neither of this machine nor
 * of the address listened on, and those whose `Host` is a foreign name, which a page gets there by DNS
 * rebinding. Without it every page in a browser on this machine could act here. Programs send no `Origin`.
 *
 * @param host the address that the server was asked to listen on; where that is every address (0.0.0.0), callers may
 * name any IP address, but no name besides `localhost`
 */
export function refuseForeign(scope: FastifyInstance, host: string): void {
  scope.addHook("onRequest", (request, reply, done) => {
    const problem = foreign(request.headers, host);
    if (problem === undefined) return done();
    reply.code(403).send({
      error: `Refused: ${problem}`,
      because: [],
      hints: [
        `Only programs, and pages served from this machine, may call this; ask for it as ${host}, localhost or 127.0.0.1.`,
      ],
    });
  });
}

/** What gives a request away as another site's; undefined when nothing does. */
export function foreign(
  { host: named, origin }: { host?: string | undefined; origin?: string | undefined },
  host: string,
): string | undefined {
  const isOurs = (hostname: string | undefined) => {
    if (hostname === undefined) return false;
    if (isLoopbackHost(hostname) || hostname === host.toLowerCase()) return true;
    return wildcards.has(host) && isIP(hostname) !== 0;
  };
  if (!isOurs(hostnameOf(`http://${named}`))) return `the Host header names ${quote(named)}`;
  if (origin !== undefined && !isOurs(hostnameOf(origin))) return `the Origin header is ${quote(origin)}`;
  return undefined;
}

/** The host of a URL in lower case, an IPv6 address without its brackets. */
function hostnameOf(url: string): string | undefined {
  return URL.parse(url)?.hostname.replace(/^\[|\]$/g, "");
}

function quote(text: string | undefined): string {
  return text === undefined ? "nothing" : JSON.stringify(text.slice(0, 100));
}
