import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { ControlAction } from "../../harness/run/running-harness.ts";
import { membersOf } from "../../util/json.ts";
import { asText } from "../../util/text.ts";
import { paint } from "../kit/paint.ts";
import { shortenHex } from "../kit/payment-line.ts";

/** What was done to a running `up` from elsewhere, in a line; undefined of what only reads. */
export function describeAction({ path, body }: ControlAction): string | undefined {
  const given = membersOf(body);
  const text = (name: string) => (given[name] === undefined ? "" : asText(given[name]));
  const line = (what: string, more: string) => `${timeOfDay()} ${paint.strong(what.padEnd(7))} ${more}`;
  switch (path) {
    case "/harness/fund":
      return line(
        "fund",
        `${text("network")}: ${text("amount")} of the smallest unit to ${shortenHex(text("to"))}`,
      );
    case "/harness/advance-time":
      return line("time", `${text("network")}: ${text("seconds")} s forward`);
    case "/harness/reset":
      return line("reset", "chains and ledger are as they were at the start");
    case "/harness/faults/add":
      return line("fault", paint.bad(`${text("network")}: ${text("kind")} is set`));
    case "/harness/faults/remove":
      return line("fault", "one was ended");
    case "/harness/faults/clear":
      return line("fault", "all were ended");
    default:
      return undefined;
  }
}

/** A shop asks once, when it starts; what asks all the time is no news. */
const quietMs = 1_000;

/** Calls `write` with a line when a shop, or another client, has asked which payments are taken here. */
export function followShops(server: Server, write: (line: string) => void): void {
  let last = -quietMs;
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== "GET" || !/^(\/v1)?\/supported\/?$/.test(request.url?.split("?")[0] ?? "")) return;
    response.once("finish", () => {
      const now = performance.now();
      if (response.statusCode !== 200 || now - last < quietMs) return;
      last = now;
      write(
        `${timeOfDay()} ${paint.strong("shop   ")} one has connected: it has asked for what is supported`,
      );
    });
  });
}

function timeOfDay(): string {
  return new Date().toTimeString().slice(0, 8);
}
