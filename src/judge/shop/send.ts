import { once } from "node:events";
import https from "node:https";
import { text } from "node:stream/consumers";
import { joinHeaders } from "../../util/join-headers.ts";
import { http } from "../../util/node-http.ts";

/** What a shop answered. */
export type Answer = { status: number; headers: Headers; body: string };

export type SendOptions = {
  headers?: Record<string, string>;
  timeoutMs: number;
  /** Breaks the connection so long after the request was sent, and waits for no answer. */
  breakOffAfterMs?: number;
};

/** Asks for what is at a URL, over a connection of its own. Undefined when no answer came. */
export async function send(url: string, options: SendOptions): Promise<Answer | undefined> {
  const { headers = {}, timeoutMs, breakOffAfterMs } = options;
  const { request: start } = url.startsWith("https:") ? https : http;
  const outgoing = start(url, { agent: false, headers, signal: AbortSignal.timeout(timeoutMs) });
  if (breakOffAfterMs !== undefined) setTimeout(() => outgoing.destroy(), breakOffAfterMs);
  const answered = once(outgoing, "response");
  // Errors come after the answer too, when it is broken off.
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
