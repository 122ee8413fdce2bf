import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Address } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { createHttpRelay, relayTargetOf } from "../../util/http-relay.ts";
import { joinHeaders } from "../../util/json.ts";
import { listenOnLoopback } from "../../util/node-http.ts";

/** A response of the facilitator, or one that replaces it. */
export type LineAnswer = { status: number; headers: Record<string, string>; body: string };

/** One request from a server to the facilitator. */
export type LineRequest = {
  /** `verify`, `settle`, `supported`, or another last segment of the path. */
  operation: string;
  body: string;
  /** Forwards the request and returns the facilitator's response. */
  forward(): Promise<LineAnswer>;
  /** Forwards the request and resets the connection to the facilitator as soon as its response begins to arrive. */
  forwardAndLose(): Promise<void>;
};

/** Decides how a request is answered, or that its connection is reset. */
export type LineRule = (request: LineRequest) => Promise<LineAnswer | "reset">;

/** The rule for one payer's requests, so that cases with different payers do not disturb each other. */
export type PayerLine = {
  /** The number of requests about this payer. */
  readonly requests: number;
  /** Applied to the following requests; undefined forwards everything. */
  rule: LineRule | undefined;
};

/** A proxy between a server and its facilitator. */
export type FacilitatorLine = Awaited<ReturnType<typeof startFacilitatorLine>>;

/** Starts a proxy to a facilitator. It forwards everything until it has a rule. */
export async function startFacilitatorLine(facilitatorUrl: string, atPort = 0) {
  const facilitator = relayTargetOf(facilitatorUrl);
  const payers = new Map<string, { requests: number; rule: LineRule | undefined }>();
  let requests = 0;

  function lineAbout(body: string): PayerLine | undefined {
    const written = body.toLowerCase();
    const [, found] = [...payers].find(([payer]) => written.includes(payer)) ?? [];
    if (found !== undefined) found.requests++;
    return found;
  }

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    requests++;
    const body = await text(incoming);
    const headers = withoutOwn(incoming.headers);
    const send = () => relay.forward(incoming, outgoing, { body, headers });
    const passed: LineRequest = {
      operation: incoming.url?.split("/").at(-1) ?? "",
      body,
      async forward() {
        const answer = await send();
        const { statusCode: status = 502 } = answer;
        return { status, headers: withoutOwn(answer.headers), body: await text(answer) };
      },
      async forwardAndLose() {
        (await send()).socket.resetAndDestroy();
      },
    };
    const rule = lineAbout(body)?.rule ?? ((one: LineRequest) => one.forward());
    const given = await rule(passed).catch(() => "reset" as const);
    if (given === "reset") incoming.socket.resetAndDestroy();
    else outgoing.writeHead(given.status, given.headers).end(given.body);
  }

  const relay = createHttpRelay({
    target: () => facilitator,
    ownConnections: true,
    answer: (incoming, outgoing) => void answer(incoming, outgoing).catch(() => incoming.socket.destroy()),
  });
  const port = await listenOnLoopback(relay.server, { port: atPort }).catch((cause: unknown) => {
    throw new KitError(`The facilitator's port ${atPort} is taken`, {
      code: "port-in-use",
      hints: ["Is an `up` running there? Another port is chosen with --facilitator-port."],
      cause,
    });
  });
  return {
    /** The facilitator's URL for the server; ends in `/v1`. */
    url: `http://127.0.0.1:${port}/v1`,
    /** The number of requests, about any payer or none. */
    get requests() {
      return requests;
    },
    /** The line for requests whose body contains this payer's address. All others are forwarded. */
    of(payer: Address) {
      const key = payer.toLowerCase();
      const line = payers.get(key) ?? { requests: 0, rule: undefined };
      payers.set(key, line);
      return line;
    },
    [Symbol.asyncDispose]: relay.close,
  };
}

/** Headers about the connection or the body, which the proxy sets itself. */
const ownHeaders = new Set(["connection", "keep-alive", "transfer-encoding", "content-length", "host"]);

function withoutOwn(headers: IncomingMessage["headers"]): Record<string, string> {
  return Object.fromEntries(Object.entries(joinHeaders(headers)).filter(([name]) => !ownHeaders.has(name)));
}
