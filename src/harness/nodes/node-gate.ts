import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { describeRefusal, foreign, type Listening } from "../../service/http/local-server.ts";
import { KitError } from "../../util/errors.ts";
import { createHttpRelay, type RelayTarget, relayTargetOf } from "../../util/http-relay.ts";

/** Loopback only, or all addresses of this machine: IPv4, or IPv4 and IPv6. */
export type GateHost = "127.0.0.1" | "0.0.0.0" | "::";

/** The gate through which users reach a node. */
export type NodeGate = Awaited<ReturnType<typeof startNodeGate>>;

export type NodeGateOptions = {
  /** The node's name in messages, such as `base`. */
  name: string;
  host: GateHost;
  /** Host names besides `localhost` that callers may use. */
  allowHosts?: readonly string[] | undefined;
  /** Any free port by default. */
  port?: number | undefined;
};

/**
 * Starts a proxy between a node and its users, including WebSockets, because a node answers everybody. The gate refuses
 * web pages of other sites, and host names other than this machine's, which pages could use by DNS rebinding. The service
 * does not go through the gate.
 *
 * @throws {KitError} if it cannot listen on the port
 */
export async function startNodeGate({ name, host, allowHosts, port = 0 }: NodeGateOptions) {
  const listening = { host, allowHosts };
  let node: RelayTarget | undefined;

  const relay = createHttpRelay({
    target: () => node,
    // Only requests that may come from a browser.
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
        // A dead node looks the same as without a gate.
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
    /** Lets requests through to the node. Earlier connections are dropped. */
    open(nodeUrl: string) {
      node = relayTargetOf(nodeUrl);
    },
    /** Stops the gate and drops every connection through it. Can be called again. */
    close: relay.close,
  };
}

/**
 * Returns true if a request certainly does not come from a web page, so that its bytes can be passed on unparsed.
 * Browsers send an `Origin` with every POST, so a POST without one is a program's. Parsing everything would double the
 * time of a call.
 */
function isOfProgram(request: Buffer, listening: Listening): boolean {
  const end = request.indexOf("\r\n\r\n");
  const head = request.toString("latin1", 0, Math.max(end, 0)).toLowerCase();
  if (!head.startsWith("post ") || head.includes("\norigin")) return false;
  const host = /\nhost:[ \t]*(\S+)/.exec(head)?.[1];
  return foreign({ host }, listening) === undefined;
}

/** The reason to refuse a request as foreign. Browser extensions (wallets) are allowed: no page can have their origin. */
function problemOf(
  { host, origin }: { host?: string | undefined; origin?: string | undefined },
  listening: Listening,
): string | undefined {
  const isExtension = origin !== undefined && /^[a-z-]+-extension:\/\/[\w-]+$/.test(origin);
  return foreign({ host, origin: isExtension ? undefined : origin }, listening);
}

/** Sets the CORS headers that let a page send JSON and read the answer. */
function allow(outgoing: ServerResponse, origin: string): void {
  outgoing.setHeader("access-control-allow-origin", origin);
  outgoing.setHeader("access-control-allow-methods", "POST");
  outgoing.setHeader("access-control-allow-headers", "content-type");
  outgoing.setHeader("vary", "origin");
}
