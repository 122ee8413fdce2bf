import { z } from "zod";
import {
  type PaymentSummary,
  paymentAnswerSchema,
  paymentListSchema,
  paymentSummarySchema,
} from "../../observe/timeline/payment-view.ts";
import { KitError } from "../../util/errors.ts";
import { answersWithinMs, noAnswer, openHttp, sendHttp } from "../../util/http-client.ts";
import { membersOf, parseJson, unlessTooDeep } from "../../util/json.ts";
import { sleep } from "../../util/waiting.ts";

/** Reads payments from a running `up`, `mock` or `serve`. */
export type PaymentReader = ReturnType<typeof createPaymentReader>;

const listSchema = paymentListSchema.extend({ payments: z.array(z.unknown()) });

const settlementSchema = z.record(z.string(), z.string().nullable());

/** A longer event in a stream is not a payment. */
const longestEvent = 1_048_576;

/** The pause before reconnecting to an interrupted stream. */
const reconnectMs = 500;

/**
 * @param origin such as `http://127.0.0.1:4402`
 * @param token the token of a `serve`'s admin listener; `up` and `mock` need none
 */
export function createPaymentReader(origin: string, token?: string) {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const shownBy =
    "Only a running `x402-kit up` or `mock` shows payments, and the admin listener of `serve` (ADMIN_PORT); give its address by --url";
  const unreachable = (failure: unknown) => {
    const { message, cause, code, hints } = noAnswer(origin, failure, "nothing answers there");
    return new KitError(`No payments can be read at ${origin}: ${message}`, {
      cause,
      code,
      hints: [...hints, shownBy],
    });
  };
  const refused = (path: string, status: number | undefined, body?: unknown) => {
    const hint =
      status !== undefined && status >= 500
        ? "That is a fault of what runs there, and says nothing of the payment: its log, or its output, has the cause"
        : shownBy;
    const { error } = membersOf(body);
    const said = typeof error === "string" ? `: ${error}` : "";
    return new KitError(`${origin}${path} answers with status ${status}${said}`, {
      code: "unexpected-answer",
      hints: [hint],
    });
  };
  const somethingElse = (path: string) =>
    new KitError(`${origin}${path} answers, and not with payments`, {
      code: "unexpected-answer",
      hints: [shownBy, "An `up` of another version than this command may write them otherwise"],
    });

  async function send(path: string) {
    return sendHttp(`${origin}${path}`, { headers: authorization }).catch((failure: unknown) => {
      throw unreachable(failure);
    });
  }

  /**
   * Returns the JSON of a 200, and undefined for the 404 of an unknown payment.
   *
   * @throws KitError for any other response
   */
  async function read(path: string): Promise<unknown> {
    const { status, text } = await send(path);
    requireAccess(status);
    const body = unlessTooDeep(parseJson(text));
    // A missing route, as at `serve`, answers with another kind of body or none.
    if (status === 404 && membersOf(body).error !== undefined) return undefined;
    if (status !== 200) throw refused(path, status, body);
    if (body === undefined) throw somethingElse(path);
    return body;
  }

  function requireAccess(status: number | undefined): void {
    if (status !== 401) return;
    throw new KitError(`${origin} shows payments to those who have its token`, {
      code: "unauthorized",
      hints: ["Give ADMIN_TOKEN of that `serve`: --token TOKEN, or the variable ADMIN_TOKEN."],
    });
  }

  async function readStream(
    lastEventId: string | undefined,
    { onEvent, signal }: { onEvent: (event: ServerEvent) => void; signal: AbortSignal },
  ): Promise<void> {
    const path = "/events";
    const response = await openHttp(`${origin}${path}`, {
      signal,
      timeoutMs: answersWithinMs,
      headers: { ...authorization, ...(lastEventId !== undefined && { "last-event-id": lastEventId }) },
    });
    requireAccess(response.statusCode);
    if (response.statusCode !== 200) throw refused(path, response.statusCode);
    let rest = "";
    for await (const chunk of response.setEncoding("utf8")) {
      const blocks = `${rest}${chunk}`.split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) onEvent(readEvent(block));
      if (rest.length > longestEvent) throw somethingElse(path);
    }
  }

  return {
    /** Newest first. */
    async list(limit: number) {
      const path = `/payments?limit=${limit}`;
      const { data } = listSchema.safeParse(await read(path));
      if (data === undefined) throw somethingElse(path);
      // One unreadable payment must not hide the others.
      const payments = data.payments.flatMap((one) => paymentSummarySchema.safeParse(one).data ?? []);
      if (payments.length === 0 && data.payments.length > 0) throw somethingElse(path);
      return payments.slice(0, limit);
    },
    async find(id: string) {
      const path = `/payments/${encodeURIComponent(id)}`;
      const body = await read(path);
      if (body === undefined) return undefined;
      const { data } = paymentAnswerSchema.safeParse(body);
      if (data === undefined) throw somethingElse(path);
      return data.payment;
    },
    /** The ledger's entry for a payment that {@link find} does not return, by its settlement id. Only `serve` has one. */
    async findSettlement(id: string) {
      const { text } = await send(`/payments/${encodeURIComponent(id)}`);
      return settlementSchema.safeParse(membersOf(parseJson(text)).settlement).data;
    },
    /**
     * Calls back with every change of a payment until the signal aborts, beginning with all known payments. Reconnects
     * if the stream is interrupted.
     */
    async follow(onChange: (payment: PaymentSummary) => void, signal: AbortSignal) {
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
          if (!reached) throw cause instanceof KitError ? cause : unreachable(cause);
        }
        await sleep(reconnectMs, signal);
      }
    },
  };
}

type ServerEvent = { id: string | undefined; event: string | undefined; data: string };

function readEvent(block: string): ServerEvent {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
  return { id: field("id"), event: field("event"), data: field("data") ?? "" };
}
