import { KitError } from "../../util/errors.ts";
import { http } from "../../util/node-http.ts";

export type JsonResponse = {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: unknown;
};

/** Longer than the longest wait for a settlement. */
const defaultTimeoutMs = 120_000;

/**
 * One JSON request, as a rule to this machine. `node:http` and not `fetch`: the first `fetch` of a process costs
 * 80 ms, which `up` would spend on nothing.
 *
 * @throws KitError when there is no answer, or it is not JSON.
 */
export async function requestJson(
  url: string,
  options: {
    method?: "GET" | "POST";
    headers?: Record<string, string>;
    body?: unknown;
    timeoutMs?: number;
  } = {},
): Promise<JsonResponse> {
  const { request } = url.startsWith("https:") ? await import("node:https") : http;
  const { promise, resolve, reject } = Promise.withResolvers<JsonResponse>();
  const text = options.body === undefined ? undefined : JSON.stringify(options.body);
  const headers = {
    ...(text === undefined ? {} : { "content-type": "application/json" }),
    ...options.headers,
  };
  const fail = (cause: unknown) => reject(new KitError(`No answer from ${url}`, { cause }));

  const timeout = AbortSignal.timeout(options.timeoutMs ?? defaultTimeoutMs);
  const outgoing = request(url, { method: options.method ?? "GET", headers, signal: timeout }, (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("error", fail);
    response.on("end", () => {
      try {
        const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      } catch (cause) {
        reject(
          new KitError(`The answer of ${url} has status ${response.statusCode} and is not JSON`, { cause }),
        );
      }
    });
  });
  outgoing.on("error", fail);
  outgoing.end(text);
  return promise;
}
