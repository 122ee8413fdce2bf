import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { KitError } from "../../util/errors.ts";
import { joinHeaders } from "../../util/json.ts";
import { closeAtOnce, listenOnLoopback } from "../../util/loopback.ts";
import { http } from "../../util/node-http.ts";

/** An answer of the facilitator, or one that replaces it. */
export type LineAnswer = { status: number; headers: Record<string, string>; body: string };

/** One request from a server to the facilitator. */
export type LineRequest = {
  /** `verify`, `settle`, `supported`, or another last segment of the path. */
  operation: string;
  body: string;
  /** Forwards the request; returns the facilitator's answer. */
  forward(): Promise<LineAnswer>;
  /** Forwards it, and breaks the connection to the facilitator when its answer begins to arrive. */
  forwardAndLose(): Promise<void>;
};

/** Decides how a request is answered, or that its connection is reset. */
export type LineRule = (request: LineRequest) => Promise<LineAnswer | "reset">;

/** A proxy between a server and its facilitator. */
export type FacilitatorLine = AsyncDisposable & {
  /** The facilitator's URL for the server; ends in `/v1`. */
  readonly url: string;
  /** How many requests came. */
  readonly requests: number;
  /** The rule for the next requests; undefined forwards everything. */
  rule: LineRule | undefined;
};

/** Starts a proxy to a facilitator, which forwards everything until it has a rule. */
export async function startFacilitatorLine(facilitatorUrl: string, atPort = 0): Promise<FacilitatorLine> {
  const origin = new URL(facilitatorUrl).origin;
  let requests = 0;
  const server = http.createServer(async (incoming, outgoing) => {
    requests++;
    const body = await text(incoming);
    const send = (lose: boolean) => passOn(origin, incoming, body, lose);
    const passed: LineRequest = {
      operation: incoming.url?.split("/").at(-1) ?? "",
      body,
      async forward() {
        const answer = await send(false);
        return answer ?? { status: 502, headers: {}, body: "" };
      },
      async forwardAndLose() {
        await send(true);
      },
    };
    const rule = line.rule ?? ((one: LineRequest) => one.forward());
    const answer = await rule(passed).catch(() => "reset" as const);
    if (answer === "reset") incoming.socket.resetAndDestroy();
    else outgoing.writeHead(answer.status, answer.headers).end(answer.body);
  });
  const port = await listenOnLoopback(server, { port: atPort }).catch((cause: unknown) => {
    throw new KitError(`The facilitator's port ${atPort} is taken`, {
      hints: ["Is an `up` running there? Another port is chosen with --facilitator-port."],
      cause,
    });
  });
  const line: FacilitatorLine = {
    url: `http://127.0.0.1:${port}/v1`,
    get requests() {
      return requests;
    },
    rule: undefined,
    [Symbol.asyncDispose]: () => closeAtOnce(server),
  };
  return line;
}

/** Headers about the connection or the body, which the proxy sets itself. */
const ownHeaders = new Set(["connection", "keep-alive", "transfer-encoding", "content-length", "host"]);

/** Resolves to undefined when the answer is to be lost. */
function passOn(
  origin: string,
  { method, url = "", headers }: IncomingMessage,
  body: string,
  lose: boolean,
): Promise<LineAnswer | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<LineAnswer | undefined>();
  const onward = http.request(
    new URL(url, origin),
    // A connection of its own, since the answer is to be lost with it.
    { method, agent: false, headers: { ...withoutOwn(headers), "content-length": Buffer.byteLength(body) } },
    (answer) => {
      if (lose) {
        answer.socket.resetAndDestroy();
        resolve(undefined);
        return;
      }
      const status = answer.statusCode ?? 502;
      text(answer).then(
        (read) => resolve({ status, headers: withoutOwn(answer.headers), body: read }),
        reject,
      );
    },
  );
  onward.on("error", reject);
  onward.end(body);
  return promise;
}

function withoutOwn(headers: IncomingMessage["headers"]): Record<string, string> {
  return Object.fromEntries(Object.entries(joinHeaders(headers)).filter(([name]) => !ownHeaders.has(name)));
}
