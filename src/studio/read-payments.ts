import type { IncomingMessage } from "node:http";
import { KitError } from "../errors.ts";
import { http } from "../util/node-http.ts";
import {
  type PaymentDetail,
  type PaymentSummary,
  paymentAnswerSchema,
  paymentListSchema,
  paymentSummarySchema,
} from "./payment-view.ts";

/** Reads what a running `up` or `mock` tells of payments. */
export type PaymentReader = {
  /** Newest first. */
  list(limit: number): Promise<readonly PaymentSummary[]>;
  find(id: string): Promise<PaymentDetail | undefined>;
  /**
   * Calls back with every change of a payment until the signal aborts, beginning with all that is known; goes on by
   * itself where the stream was cut.
   */
  follow(onChange: (payment: PaymentSummary) => void, signal: AbortSignal): Promise<void>;
};

/** Between attempts to go on with a stream that was cut. */
const reconnectMs = 500;

/**
 * @param origin such as `http://127.0.0.1:4402`
 * @param token what the admin listener of `serve` asks for; `up` and `mock` ask for none
 */
export function createPaymentReader(origin: string, token?: string): PaymentReader {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const nothingThere = (cause?: unknown) =>
    new KitError(`No payments can be read at ${origin}`, {
      ...(cause !== undefined && { cause }),
      hints: [
        "Payments are shown by a running `x402-kit up` or `mock`, and by the admin listener of `serve`; with --url for another address than the default",
      ],
    });

  async function read(path: string): Promise<{ status: number; body: unknown }> {
    try {
      const response = await open(`${origin}${path}`, { headers: authorization });
      let text = "";
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
      requireAccess(response.statusCode);
      return { status: response.statusCode ?? 0, body: JSON.parse(text) };
    } catch (cause) {
      throw cause instanceof KitError ? cause : nothingThere(cause);
    }
  }

  function requireAccess(status: number | undefined): void {
    if (status !== 401) return;
    throw new KitError(`${origin} shows payments to those who have its token`, {
      hints: ["Give ADMIN_TOKEN of that `serve`: --token TOKEN, or the variable ADMIN_TOKEN."],
    });
  }

  async function readStream(
    lastEventId: string | undefined,
    { onEvent, signal }: { onEvent: (event: ServerEvent) => void; signal: AbortSignal },
  ): Promise<void> {
    const response = await open(`${origin}/events`, {
      signal,
      headers: { ...authorization, ...(lastEventId !== undefined && { "last-event-id": lastEventId }) },
    });
    requireAccess(response.statusCode);
    if (response.statusCode !== 200) throw nothingThere();
    let rest = "";
    for await (const chunk of response.setEncoding("utf8")) {
      const blocks = `${rest}${chunk}`.split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) onEvent(readEvent(block));
    }
  }

  return {
    async list(limit) {
      const { data } = paymentListSchema.safeParse((await read(`/payments?limit=${limit}`)).body);
      if (data === undefined) throw nothingThere();
      return data.payments;
    },
    async find(id) {
      const { status, body } = await read(`/payments/${encodeURIComponent(id)}`);
      if (status === 404) return undefined;
      const { data } = paymentAnswerSchema.safeParse(body);
      if (data === undefined) throw nothingThere();
      return data.payment;
    },
    async follow(onChange, signal) {
      let lastEventId: string | undefined;
      let reached = false;
      while (!signal.aborted) {
        try {
          await readStream(lastEventId, {
            signal,
            onEvent({ id, event, data }) {
              reached = true;
              lastEventId = id ?? lastEventId;
              if (event !== "payment") return;
              const read = paymentSummarySchema.safeParse(JSON.parse(data));
              if (read.success) onChange(read.data);
            },
          });
        } catch (cause) {
          if (signal.aborted) return;
          if (!reached) throw cause instanceof KitError ? cause : nothingThere(cause);
        }
        if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, reconnectMs));
      }
    },
  };
}

type ServerEvent = { id: string | undefined; event: string | undefined; data: string };

function readEvent(block: string): ServerEvent {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
  return { id: field("id"), event: field("event"), data: field("data") ?? "" };
}

/** Asks for a URL. `node:http` and not `fetch`, which would keep the process alive for its pool of connections. */
function open(
  url: string,
  options: { headers?: Record<string, string>; signal?: AbortSignal },
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  http.get(url, options, resolve).on("error", reject);
  return promise;
}
