import type { ServerResponse } from "node:http";
import { finished } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeHeader } from "../../protocol/payment-headers.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { type CasePayer, challengeOf, type Offer, type ReceivedPayment } from "../scene/offers.ts";
import type { Exchange } from "../scene/purchases.ts";
import type { ShopScene } from "../scene/scene.ts";
import type { Settled } from "./shop-settling.ts";

/** The pause between the last bytes and the reset, so that the bytes arrive. */
const beforeResetMs = 50;

/** The point of a response at which the connection is reset. */
export type ResetPlace = "instead of an answer" | "before the body" | "in the body" | "after the body";

type VisitOptions = {
  scene: ShopScene;
  payer: CasePayer;
  versions: readonly X402Version[];
  resource: string;
  elsewhere: string;
  goods: string;
  path: string;
  /** Records the response. */
  exchange: Exchange;
  paidBy: ReceivedPayment | undefined;
  /** The default offers. */
  offers(): Promise<readonly Offer[]>;
  /** All offers made so far. */
  offersMade: Offer[];
  /** Makes the case wait for work that ends later. */
  track(work: Promise<unknown>): void;
};

/** The content of a 402. */
type Asking = {
  error?: string;
  /** Only for the report. */
  why?: string | undefined;
  offers?: readonly Offer[];
  headers?: Record<string, string>;
};

/** One request of the judged client, with the shop's possible responses. */
export type Visit = ReturnType<typeof createVisit>;

/** Creates the possible responses to a request. */
export function createVisit(response: ServerResponse, options: VisitOptions) {
  const { scene, payer, versions, resource, elsewhere, goods, path } = options;
  const { exchange, paidBy, offersMade, track } = options;

  async function send(status: number, headers: Record<string, string> = {}, body = ""): Promise<void> {
    exchange.answer = String(status);
    response.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers }).end(body);
    await finished(response).catch(() => {});
  }

  return {
    scene,
    payer,
    /** The last part of the path. */
    path,
    /** A URL on another origin, where nothing is sold. */
    elsewhere,
    send,
    /** Runs something later; the case does not end before it. */
    later: (delayMs: number, work: () => Promise<unknown>): void => track(sleep(delayMs).then(work)),
    /** Answers 402; by default with the default offers, because payment is required. */
    async ask({ error = "a payment is required", why, offers, headers = {} }: Asking = {}): Promise<void> {
      const asked = offers ?? (await options.offers());
      offersMade.push(...asked);
      const challenge = challengeOf(asked, versions, resource, error);
      const types = { "content-type": "application/json" };
      await send(402, { ...types, ...challenge.headers, ...headers }, JSON.stringify(challenge.body));
      exchange.answer = `402 asks ${asked.map(({ amount }) => amount).join(" or ")} (${why === undefined ? error : `${error}: ${why}`})`;
    },
    /** Delivers the goods for a settled payment. `receipt` replaces the value of the receipt header. */
    async serve(
      { transaction }: Settled,
      { receipt, reset }: { receipt?: string; reset?: ResetPlace } = {},
    ): Promise<void> {
      exchange.answer = reset === undefined ? "200 goods" : `reset ${reset}`;
      if (reset === "instead of an answer") return void response.socket?.resetAndDestroy();
      const body = JSON.stringify({ goods });
      const success = { success: true, transaction, network: paidBy?.network ?? "", payer: payer.address };
      const amount = scene.offer.method.takesLess ? { amount: `${paidBy?.signed.limit}` } : {};
      const written = receipt ?? encodeHeader({ ...success, ...amount });
      response.writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "X-PAYMENT-RESPONSE": written,
        "PAYMENT-RESPONSE": written,
      });
      if (reset !== undefined) return breakOff(response, body, reset);
      response.end(body);
      await finished(response).catch(() => {});
      if (!response.writableFinished) exchange.answer = "200 goods, but the client was gone";
    },
  };
}

async function breakOff(response: ServerResponse, body: string, place: ResetPlace): Promise<void> {
  const { socket } = response;
  response.flushHeaders();
  if (place === "in the body") response.write(body.slice(0, body.length / 2));
  if (place === "after the body") response.end(body);
  await sleep(beforeResetMs);
  socket?.resetAndDestroy();
}

type PaidOptions = {
  /** How often this payment was sent before. */
  repeats: number;
  /** How many other payments were sent before. */
  othersBefore: number;
  settle(payment: ReceivedPayment): Promise<Settled>;
};

/** A request that carries a payment. */
export type PaidVisit = ReturnType<typeof createPaidVisit>;

/** Creates the possible responses to a request with a payment. */
export function createPaidVisit(
  visit: Visit,
  payment: ReceivedPayment,
  { repeats, othersBefore, settle }: PaidOptions,
) {
  const { scene, payer } = visit;
  return {
    ...visit,
    payment,
    repeats,
    othersBefore,
    isFirst: repeats + othersBefore === 0,
    /** The receipt header for this payment. `content` overrides the members of a success. */
    receipt: (content: Record<string, unknown>): string =>
      encodeHeader({ success: true, network: payment.network, payer: payer.address, ...content }),
    /** Settles the payment on chain. Repeated calls return the same outcome. */
    settle: (): Promise<Settled> => settle(payment),
    /** Settles the payment, but drops the facilitator's response. */
    settleAndLoseAnswer: () => scene.settleAndLoseAnswer(payment),
    /** Settles the payment and serves, or answers 402 if that failed, as a good shop does. */
    async sell(): Promise<void> {
      const settled = await settle(payment);
      if (settled.success) await visit.serve(settled);
      else await visit.ask({ error: settled.reason, why: settled.why });
    },
  };
}
