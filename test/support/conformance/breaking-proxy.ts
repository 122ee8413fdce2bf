import { type IncomingMessage, request as requestOverHttp, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import type { ScenarioFault } from "../../../src/fixtures/cases/scenario.ts";
import { type LoopbackServer, listenOnLoopback } from "../loopback-server.ts";

/** How a proxy between client and service breaks an exchange. */
export type Breakage = Extract<
  ScenarioFault,
  | "reset_before"
  | "reset_after"
  | "never_answers"
  | "internal_error"
  | "gateway_error"
  | "gateway_timeout"
  | "cut_off"
  | "not_json"
>;

const html = { "content-type": "text/html" };

/** A proxy in front of the service, on loopback, that breaks every exchange in the given way. */
export async function startBreakingProxy(target: string, breakage: Breakage): Promise<LoopbackServer> {
  async function breakExchange(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    if (breakage === "reset_before") {
      incoming.socket.resetAndDestroy();
      return;
    }
    const { method, url } = incoming;
    // On a connection that is kept open, the service notices a reset after its response.
    const headers = { ...incoming.headers, connection: "keep-alive" };
    const onward = requestOverHttp(`${target}${url}`, { method, headers, agent: false });
    onward.end(body);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      onward.once("response", resolve).once("error", reject);
    });
    if (breakage === "reset_after" || breakage === "never_answers" || breakage === "gateway_timeout") {
      answer.socket.resetAndDestroy();
      if (breakage === "reset_after") incoming.socket.resetAndDestroy();
      if (breakage === "gateway_timeout") {
        outgoing.writeHead(504, html).end("<html><h1>504 Gateway Time-out</h1></html>\n");
      }
      return;
    }
    const whole = await buffer(answer);
    switch (breakage) {
      case "internal_error":
        outgoing.writeHead(500, html).end("<html><h1>500 Internal Server Error</h1></html>\n");
        break;
      case "gateway_error":
        outgoing.writeHead(502, html).end("<html><h1>502 Bad Gateway</h1></html>\n");
        break;
      case "not_json":
        outgoing.writeHead(200, html).end("<html><h1>Please log in</h1></html>\n");
        break;
      case "cut_off":
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        outgoing.write(whole.subarray(0, whole.length / 2));
        // The written bytes must be sent before the connection is closed.
        await setTimeout(20);
        incoming.socket.resetAndDestroy();
    }
  }

  return listenOnLoopback((incoming, outgoing) => {
    breakExchange(incoming, outgoing).catch(() => incoming.socket.resetAndDestroy());
  });
}
