import { once } from "node:events";
import https from "node:https";
import { text } from "node:stream/consumers";
import { joinHeaders } from "../../util/join-headers.ts";
import { http } from "../../util/node-http.ts";

/** The answer of a shop. */
export type Answer = { status: number; headers: Headers; body: string };

export type SendOptions = {
  headers?: Record<string, string>;
  timeoutMs: number;
  /** Breaks the connection this long after the request was sent, without waiting for an answer. */
  breakOffAfterMs?: number;
};

/** Sends a GET request on a new connection. Undefined when no answer came. */
export async function send(url: string, options: SendOptions): Promise<Answer | undefined> {
  const { headers = {}, timeoutMs, breakOffAfterMs } = options;
  const { request: start } = url.startsWith("https:") ? https : http;
  const outgoing = start(url, { agent: false, headers, signal: AbortSignal.timeout(timeoutMs) });
  if (breakOffAfterMs !== undefined) setTimeout(() => outgoing.destroy(), breakOffAfterMs);
  const answered = once(outgoing, "response");
  // Breaking the connection causes an error after the answer, too.
  outgoing.on("error", () => {});
  outgoing.end();
  try {
    const [response] = await answered;
    const responseHeaders = new Headers(joinHeaders(response.headers));
    return { status: Number(response.statusCode), headers: responseHeaders, body: await text(response) };
  } catch {
    return undefined;
  }
}
