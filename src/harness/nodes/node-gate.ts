import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { describeRefusal, foreign, type Listening } from "../../service/http/local-server.ts";
import { KitError } from "../../util/errors.ts";
import { createHttpRelay, type RelayTarget, relayTargetOf } from "../../util/http-relay.ts";

/** This machine alone, or every address that it has, by IPv4 or both. */
export type GateHost = "127.0.0.1" | "0.0.0.0" | "::";

/** Where users reach a node. */
export type NodeGate = Awaited<ReturnType<typeof startNodeGate>>;

export type NodeGateOptions = {
  /** The name of the node in messages: `base`. */
  name: string;
  host: GateHost;
  /** Names besides `localhost` that callers may use for it. */
  allowHosts?: readonly string[] | undefined;
  /** Any free one by default. */
  port?: number | undefined;
};

/**
 * Stands between a node and its users, WebSockets included, because a node answers everybody: it refuses web pages of other
 * sites, and other names than this machine's, which pages get there by DNS rebinding. The service does not go through it.
 *
 * @throws {KitError} when it cannot listen there
 */
export async function startNodeGate({ name, host, allowHosts, port = 0 }: NodeGateOptions) {
  const listening = { host, allowHosts };
  let node: RelayTarget | undefined;

  const relay = createHttpRelay({
    target: () => node,
    // What may be a browser's.
    reads: (request) => !isOfProgram(request, listening),
    mayUpgrade: ({ headers }) => problemOf(headers, listening) === undefined,
    answer(incoming, outgoing) {
      const { origin } = incoming.headers;
      const problem = problemOf(incoming.headers, listening);
      if (problem !== undefined) {
        outgoing.writeHead(403, { "content-type": "application/json" });
        outgoing.end(JSON.stringify(describeRefusal(problem, listening)));
        return;
      }
      if (origin !== undefined) allow(outgoing, origin);
      if (incoming.method === "OPTIONS") {
        outgoing.writeHead(204).end();
        return;
      }
      relay.forward(incoming, outgoing).then(
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.on("error", () => outgoing.destroy()).pipe(outgoing);
        },
        // A node that is gone looks as it would without a gate.
        () => outgoing.destroy(),
      );
    },
  });
  const { server } = relay;
  server.listen({ host, port });
  await once(server, "listening").catch((cause: unknown) => {
    const isTaken = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
    throw new KitError(`The ${name} node cannot listen on port ${port}${isTaken ? ": it is in use" : ""}`, {
      cause,
      hints: [
        "Choose another by --rpc-port or --rpc-ports (in a program, by the option rpcPorts), or none: a free one is found then.",
      ],
    });
  });
  const address = server.address();
  const taken = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `http://127.0.0.1:${taken}`,
    /** Lets requests through to the node. Connections that come before are broken. */
    open(nodeUrl: string) {
      node = relayTargetOf(nodeUrl);
    },
    /** Ends it, and every connection through it. Can be called again. */
    close: relay.close,
  };
}

/**
 * Returns true if a request is certainly no page's, so that its connection needs to be read no further: browsers write the `Origin`
 * of every POST, so none of their connections begins like this. Reading all of it would double what a call takes.
 */
function isOfProgram(request: Buffer, listening: Listening): boolean {
  const end = request.indexOf("\r\n\r\n");
  const head = request.toString("latin1", 0, Math.max(end, 0)).toLowerCase();
  if (!head.startsWith("post ") || head.includes("\norigin")) return false;
  const host = /\nhost:[ \t]*(\S+)/.exec(head)?.[1];
  return foreign({ host }, listening) === undefined;
}

/** The reason to refuse a request as another site's. A wallet in a browser is an extension, whose origin no page can have. */
function problemOf(
  { host, origin }: { host?: string | undefined; origin?: string | undefined },
  listening: Listening,
): string | undefined {
  const isExtension = origin !== undefined && /^[a-z-]+-extension:\/\/[\w-]+$/.test(origin);
  return foreign({ host, origin: isExtension ? undefined : origin }, listening);
}

/** Lets a page read the answer, and send JSON. */
function allow(outgoing: ServerResponse, origin: string): void {
  outgoing.setHeader("access-control-allow-origin", origin);
  outgoing.setHeader("access-control-allow-methods", "POST");
  outgoing.setHeader("access-control-allow-headers", "content-type");
  outgoing.setHeader("vary", "origin");
}
