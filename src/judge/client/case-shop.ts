import type { IncomingMessage, ServerResponse } from "node:http";
import { finished } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Hex } from "../../protocol/hex.ts";
import { encodeHeader } from "../../protocol/payment-headers.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { closeAtOnce, http, listenOnLoopback } from "../../util/node-http.ts";
import { startFacilitatorLine } from "../scene/facilitator-line.ts";
import {
  type CasePayer,
  challengeOf,
  maxTimeoutSeconds,
  type Offer,
  type ReceivedPayment,
  readPayment,
} from "../scene/offers.ts";
import { createExchangeLog, type Exchange } from "../scene/purchases.ts";
import type { Scene } from "../scene/scene.ts";
import type { ClientCase, PaidVisit, ResetPlace, Visit } from "./client-cases.ts";
import { createShopSettling, postSettle, type Received } from "./shop-settling.ts";

export type CaseShopOptions = {
  tested: ClientCase;
  scene: Scene;
  versions: readonly X402Version[];
  resource: string;
  /** A URL of another origin, where nothing is sold. */
  elsewhere: string;
  goods: string;
  payer: CasePayer;
  /** A header that every request must carry. */
  header: { name: string; value: string } | undefined;
  slowMs: number;
};

type CaseShop = ReturnType<typeof createCaseShop>;

/** How much longer than it was asked to be, in seconds, a payment may be valid: for clocks that differ. */
const lateSeconds = 600;

/** The pause between the last bytes and the reset, so that the bytes arrive. */
const beforeResetMs = 50;

/** Opens the shop of a case. It settles on chain, and remembers every payment that it has received. */
export function createCaseShop(options: CaseShopOptions) {
  const { tested, scene, header, slowMs } = options;
  const offersMade: [Offer, ...Offer[]] = [scene.offer];
  const log = createExchangeLog(scene);
  const received = new Map<Hex, Received>();
  const work = new Set<Promise<unknown>>();
  const failures: unknown[] = [];
  const track = <T>(promise: Promise<T>): Promise<T> => {
    const tracked: Promise<unknown> = promise
      .catch((error: unknown) => failures.push(error))
      .finally(() => work.delete(tracked));
    work.add(tracked);
    return promise;
  };
  const settling = createShopSettling(options, offersMade, received);
  const settle = (payment: ReceivedPayment) => track(settling.settle(payment));
  let leaks = 0;

  return {
    /** The client's requests, in order. */
    log,
    /** How many payments came to the other origin. */
    get leaks() {
      return leaks;
    },
    /** Waits until all work has ended. Throws errors of the shop itself. */
    async idle() {
      while (work.size > 0) await Promise.all(work);
      // An error of this shop must not count against the client.
      if (failures.length > 0) throw failures[0];
    },
    handle: (request: IncomingMessage, response: ServerResponse, path: string) =>
      track(handle(request, response, path)),
    /** Answers a request to the other origin, where a stranger spends each payment that comes. */
    handleElsewhere: (request: IncomingMessage, response: ServerResponse) =>
      track(handleElsewhere(request, response)),
    /** Settles what was received and is valid for longer than was asked. */
    async settleLate() {
      const latest = (await scene.now()) + BigInt(maxTimeoutSeconds + lateSeconds);
      const valid = [...received.values()].filter(({ payment }) => payment.signed.window.last > latest);
      await Promise.all(valid.map(({ payment }) => settle(payment)));
    },
  };

  function describe({ signed, network, offer }: ReceivedPayment): string {
    return log.describe(signed, (offer ?? scene.offer).network.chainId, network);
  }

  async function handleElsewhere(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    const exchange = log.begin(`${request.method} at another origin`);
    const payment = readPayment(request.headers, offersMade);
    if (payment === undefined || payment === "unreadable") {
      exchange.answer = "404";
      response.writeHead(404).end();
      return;
    }
    leaks++;
    const known = received.get(payment.signed.nonce);
    if (known === undefined) received.set(payment.signed.nonce, { payment, times: 1 });
    exchange.payment = describe(payment);
    await settle(payment);
    exchange.answer = "200, and buys with the payment itself";
    response.end("thank you");
  }

  async function handle(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    request.resume();
    const exchange = log.begin(`${request.method} /${path}`);
    const payment = readPayment(request.headers, offersMade);
    const paidBy = payment === "unreadable" ? undefined : payment;
    const visit = createVisit(response, { path, exchange, paidBy, offersMade, options, track });
    if (header !== undefined && request.headers[header.name.toLowerCase()] !== header.value) {
      return visit.send(401, {}, `the header ${header.name} is missing`);
    }
    if (payment === "unreadable") return visit.ask({ error: "invalid_payload", why: "it cannot be read" });
    if (payment === undefined) return tested.unpaid?.(visit) ?? visit.ask();

    const { nonce } = payment.signed;
    const others = [...received].filter(([known]) => known !== nonce).map(([, other]) => other);
    const entry = received.get(nonce) ?? { payment, times: 0 };
    const repeats = entry.times++;
    received.set(nonce, entry);
    exchange.payment = describe(payment);
    // Anyone who has a signed payment can settle it. So a second payment makes the shop settle the first one too.
    if (repeats === 0) await Promise.all(others.map((other) => settle(other.payment)));
    const paid: PaidVisit = {
      ...visit,
      payment,
      repeats,
      othersBefore: others.length,
      isFirst: repeats + others.length === 0,
      receipt: (content) =>
        encodeHeader({ success: true, network: payment.network, payer: visit.payer.address, ...content }),
      settle: () => settle(payment),
      async settleAndLoseAnswer() {
        await using line = await startFacilitatorLine(scene.facilitatorUrl);
        line.of(payment.signed.payer).rule = async (passed) => {
          await passed.forwardAndLose();
          return "reset";
        };
        await postSettle(line.url, scene.apiKey, settling.settleBody(payment) ?? "").catch(() => {});
      },
      async sell() {
        const settled = await settle(payment);
        await (settled.success
          ? visit.serve(settled)
          : visit.ask({ error: settled.reason, why: settled.why }));
      },
    };
    await (tested.paid?.(paid, { slowMs }) ?? paid.sell());
  }
}

type VisitOptions = {
  path: string;
  exchange: Exchange;
  paidBy: ReceivedPayment | undefined;
  /** The requests so far. */
  offersMade: Offer[];
  options: CaseShopOptions;
  track(work: Promise<unknown>): void;
};

/** The reactions to one request; `track` has the case wait for what is done later, and `exchange` gets the answer. */
function createVisit(
  response: ServerResponse,
  { path, exchange, paidBy, offersMade, options, track }: VisitOptions,
): Visit {
  const { tested, scene, versions, resource, goods, payer } = options;
  const send: Visit["send"] = async (status, headers = {}, body = "") => {
    exchange.answer = String(status);
    response.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers }).end(body);
    await finished(response).catch(() => {});
  };
  return {
    scene,
    payer,
    path,
    send,
    later: (delayMs, todo) => void track(sleep(delayMs).then(todo)),
    elsewhere: options.elsewhere,
    async ask({ error = "a payment is required", why, offers, headers = {} } = {}) {
      const asked = offers ?? (await tested.offers?.(scene)) ?? [scene.offer];
      offersMade.push(...asked);
      const challenge = challengeOf(asked, versions, resource, error);
      const types = { "content-type": "application/json" };
      await send(402, { ...types, ...challenge.headers, ...headers }, JSON.stringify(challenge.body));
      exchange.answer = `402 asks ${asked.map(({ amount }) => amount).join(" or ")} (${why === undefined ? error : `${error}: ${why}`})`;
    },
    async serve(settled, { receipt, reset } = {}) {
      exchange.answer = reset === undefined ? "200 goods" : `reset ${reset}`;
      if (reset === "instead of an answer") {
        response.socket?.resetAndDestroy();
        return;
      }
      const body = JSON.stringify({ goods });
      const written =
        receipt ??
        encodeHeader({
          success: true,
          transaction: settled.transaction,
          network: paidBy?.network ?? "",
          payer: payer.address,
          ...(scene.offer.way === "upto" && { amount: `${paidBy?.signed.limit}` }),
        });
      response.writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "X-PAYMENT-RESPONSE": written,
        "PAYMENT-RESPONSE": written,
      });
      if (reset === undefined) {
        response.end(body);
        await finished(response).catch(() => {});
        if (!response.writableFinished) exchange.answer = "200 goods, but the client was gone";
        return;
      }
      await breakOff(response, body, reset);
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

/** The shops of all cases, each under its own path. */
export type Shops = Awaited<ReturnType<typeof openShops>>;

/** Listens for the clients of all cases, at two origins. */
export async function openShops() {
  const shops = new Map<string, CaseShop>();
  const listen = async (handle: (shop: CaseShop, ...args: HandlerArguments) => Promise<void>) => {
    const server = http.createServer((request, response) => {
      const [, network = "", way = "", name = "", path = ""] = (request.url ?? "").split(/[/?]/);
      const shop = shops.get(`${network}/${way}/${name}`);
      if (shop === undefined) response.writeHead(404).end();
      else handle(shop, request, response, path).catch(() => response.destroy());
    });
    return { server, port: await listenOnLoopback(server) };
  };
  const own = await listen((shop, ...args) => shop.handle(...args));
  const other = await listen((shop, request, response) => shop.handleElsewhere(request, response));
  return {
    /** The URL of the shop with this name, and that of another origin which it can send clients to. */
    addressesOf: (name: string) => ({
      resource: `http://127.0.0.1:${own.port}/${name}/report`,
      elsewhere: `http://127.0.0.1:${other.port}/${name}/report`,
    }),
    open: (name: string, shop: CaseShop) => void shops.set(name, shop),
    async [Symbol.asyncDispose]() {
      await Promise.all([closeAtOnce(own.server), closeAtOnce(other.server)]);
    },
  };
}

type HandlerArguments = [request: IncomingMessage, response: ServerResponse, path: string];
