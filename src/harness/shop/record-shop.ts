import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { brotliDecompressSync, unzipSync } from "node:zlib";
import { channels, type Message, type ShopAnswer } from "../../observe/channels/channels.ts";
import { readChallenges } from "../../observe/explain/explain-shop.ts";
import { namedPayment, readInput } from "../../observe/explain/read-input.ts";
import { type Hex, isAddress } from "../../protocol/hex.ts";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import { membersOf } from "../../util/json.ts";
import { maskSecrets } from "../../util/text.ts";

export type ShopRecorderOptions = {
  serviceId: string;
  networks: NetworkRegistry;
  /** The origin of the shop. */
  shop: string;
};

type Ended = Extract<Message<"shop">, { step: "ended" }>;

/** A forwarded request that is still in flight. */
type Open = {
  exchange: Pick<Ended, "serviceId" | "requestId" | "method" | "url" | "shop" | "settlementId" | "isPaid">;
  /** Method and target. A payment can follow the 402 of any request with the same resource. */
  resource: string;
  port: number | undefined;
  startedAt: number;
  isEnded: boolean;
  /** Records the end with the answer received so far; set once an answer has started. */
  finish?: () => void;
};

/** A recorded 402 that a payment may follow. */
type Unpaid = Pick<Open, "resource" | "port"> & {
  ended: Ended;
  /** The header of the payment that followed. */
  paidBy: string | undefined;
};

/** How many of the newest 402s are kept. */
const mostUnpaid = 200;

/** The recorded bytes: of the body of a 402, which holds a few offers, of other error bodies, and of URLs. */
const mostChallenge = 32_768;
const mostError = 4_096;
const mostUrl = 2_000;

const paymentHeaders = ["payment-signature", "x-payment"] as const;
const answerHeaders = [
  "payment-required",
  "payment-response",
  "x-payment-response",
  "access-control-allow-origin",
  "access-control-expose-headers",
] as const;

/** Publishes client requests that concern payments. Records no headers but those of x402 and CORS. */
export function createShopRecorder({ serviceId, networks, shop }: ShopRecorderOptions) {
  const open = new WeakMap<IncomingMessage, Open>();
  let unpaid: Unpaid[] = [];

  /**
   * Returns the 402 that a payment follows: the one already matched with the same payment, otherwise the newest unpaid one,
   * preferably of the same connection, otherwise the newest one.
   */
  function takeChallenge({ resource, port }: Open, payment: string): Ended | undefined {
    const all = unpaid.filter((one) => one.resource === resource);
    const waiting = all.filter(({ paidBy }) => paidBy === undefined);
    const found =
      all.find(({ paidBy }) => paidBy === payment) ??
      waiting.findLast((one) => one.port === port) ??
      waiting.at(-1) ??
      all.at(-1);
    if (found !== undefined) found.paidBy = payment;
    return found?.ended;
  }

  function end(one: Open, how: Pick<Ended, "answer" | "fate" | "problem">): void {
    if (one.isEnded) return;
    one.isEnded = true;
    const { exchange, resource, port } = one;
    const tookMs = performance.now() - one.startedAt;
    const ended: Ended = { kind: "shop", step: "ended", at: Date.now(), ...exchange, ...how, tookMs };
    if (how.answer?.status === 402) {
      unpaid = [...unpaid, { resource, port, ended, paidBy: undefined }].slice(-mostUnpaid);
    } else if (!exchange.isPaid && how.fate !== "down") return;
    // If the shop is down, everything fails, including each asset of a page; one record is enough.
    const isAny = how.fate === "down" && !exchange.isPaid;
    channels.shop.publish(() => (isAny ? { ...ended, requestId: "shop-down" } : ended));
  }

  return {
    /** Forgets all recorded 402s. */
    forget(): void {
      unpaid = [];
    },

    /** Records a request before it is forwarded. */
    received(incoming: IncomingMessage, outgoing: ServerResponse): void {
      if (!channels.shop.isHeard()) return;
      const { method = "GET", url: target = "/", headers, socket } = incoming;
      const { origin, pathname } = URL.parse(target, `http://${headers.host}`) ?? new URL(shop);
      const name = paymentHeaders.find((one) => headers[one] !== undefined);
      const value = name && `${headers[name]}`;
      const one: Open = {
        exchange: {
          serviceId,
          requestId: randomUUID(),
          method,
          url: `${origin}${pathname}`.slice(0, mostUrl),
          shop,
          settlementId: undefined,
          isPaid: value !== undefined,
        },
        resource: `${method} ${target}`,
        port: socket.remotePort,
        startedAt: performance.now(),
        isEnded: false,
      };
      open.set(incoming, one);
      if (name !== undefined && value !== undefined) {
        const challenge = takeChallenge(one, value);
        one.exchange = { ...one.exchange, settlementId: idOf(value, challenge, networks) };
        const payment = { name: name.toUpperCase(), value };
        const { isPaid: _, ...exchange } = one.exchange;
        channels.shop.publish(() => ({
          kind: "shop",
          step: "sent",
          at: Date.now(),
          ...exchange,
          payment,
          challenge,
        }));
      }
      outgoing.once("close", () => {
        if (one.finish !== undefined) one.finish();
        else end(one, { answer: undefined, fate: "left", problem: undefined });
      });
    },

    /** Records the head of an answer, and the body if it is an error. */
    answered(incoming: IncomingMessage, answer: IncomingMessage): void {
      const one = open.get(incoming);
      if (one === undefined) return;
      const { statusCode: status = 502 } = answer;
      const headers = Object.fromEntries(
        answerHeaders.flatMap((name) =>
          answer.headers[name] === undefined ? [] : [[name, `${answer.headers[name]}`]],
        ),
      );
      const most = status === 402 ? mostChallenge : mostError;
      const chunks: Buffer[] = [];
      let size = 0;
      one.finish = () => {
        const body = size === 0 ? "" : readBody(answer, Buffer.concat(chunks).subarray(0, most));
        end(one, { answer: { status, headers, body }, fate: "answered", problem: undefined });
      };
      // Do not wait for the body: a stream may never end.
      if (status < 400) {
        one.finish();
        return;
      }
      answer.on("data", (chunk: Buffer) => {
        if (size <= most) chunks.push(chunk);
        size += chunk.length;
      });
      answer.once("end", one.finish);
    },

    /** Records that the shop did not answer. Returns true if the request may have reached it. */
    failed(incoming: IncomingMessage, problem: string): boolean {
      const one = open.get(incoming);
      if (one?.finish !== undefined) one.finish();
      else if (one !== undefined) end(one, { answer: undefined, fate: "down", problem });
      return !/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/.test(problem);
    },
  };
}

/** Returns the text of a body; empty if it cannot be decoded. Secrets are masked, except in a 402, which is public. */
function readBody({ headers, statusCode }: IncomingMessage, bytes: Buffer): ShopAnswer["body"] {
  const limits = { maxOutputLength: 2 * mostChallenge };
  const encoding = headers["content-encoding"];
  try {
    const plain =
      encoding === "br"
        ? brotliDecompressSync(bytes, limits)
        : encoding === undefined
          ? bytes
          : unzipSync(bytes, limits);
    const text = plain.toString();
    return statusCode === 402 ? text : maskSecrets(text, { isCut: true });
  } catch {
    return "";
  }
}

/** Returns the id of the settlement that a payment header names. For version 1, the token is taken from the 402. */
function idOf(value: string, challenge: Ended | undefined, networks: NetworkRegistry): Hex | undefined {
  const { input } = readInput(value);
  const named = namedPayment(input, networks);
  if (named === undefined) return undefined;
  const { network, payer, nonce, nonceSpace, assets } = named;
  const { headers = {}, body = "" } = challenge?.answer ?? {};
  const offers = readChallenges({ headers: new Headers(headers), body }).challenges.flatMap(
    (one) => one.accepts,
  );
  const offered = offers.map(membersOf).find((offer) => offer.network === network.name)?.asset;
  const asset = isAddress(offered) ? offered : assets[0];
  return settlementId(network.chainId, nonceSpace ?? asset, payer, nonce);
}
