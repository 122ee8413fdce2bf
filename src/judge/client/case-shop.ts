import type { IncomingMessage, ServerResponse } from "node:http";
import type { Hex } from "../../protocol/hex.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { closeAtOnce, http, listenOnLoopback } from "../../util/node-http.ts";
import {
  type CasePayer,
  maxTimeoutSeconds,
  type Offer,
  type ReceivedPayment,
  readPayment,
} from "../scene/offers.ts";
import { createExchangeLog } from "../scene/purchases.ts";
import type { ShopScene } from "../scene/scene.ts";
import type { ClientCase } from "./client-cases.ts";
import { createShopSettling, type Received } from "./shop-settling.ts";
import { createPaidVisit, createVisit } from "./visits.ts";

export type CaseShopOptions = {
  tested: ClientCase;
  scene: ShopScene;
  versions: readonly X402Version[];
  resource: string;
  /** A URL on another origin, where nothing is sold. */
  elsewhere: string;
  goods: string;
  payer: CasePayer;
  /** A header that every request must carry. */
  header: { name: string; value: string } | undefined;
  slowMs: number;
};

/** The part of a shop that handles requests. */
type OpenShop = Pick<ReturnType<typeof createCaseShop>, "handle" | "handleElsewhere">;

/** The margin for clocks that differ: how much longer than `maxTimeoutSeconds` a payment may be valid, in seconds. */
const lateSeconds = 600;

/** Opens the shop of a case. It settles on chain, and remembers every payment it received. */
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
  const settleOnce = createShopSettling(scene, received);
  const settle = (payment: ReceivedPayment) => track(settleOnce(payment));
  let leaks = 0;

  return {
    /** The client's requests, in order. */
    log,
    /** The number of payments that were sent to the other origin. */
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
    /** Answers a request to the other origin, where a stranger spends each payment it receives. */
    handleElsewhere: (request: IncomingMessage, response: ServerResponse) =>
      track(handleElsewhere(request, response)),
    /** Settles the received payments that are valid for longer than `maxTimeoutSeconds` allows. */
    async settleLate() {
      const latest = (await scene.now()) + BigInt(maxTimeoutSeconds + lateSeconds);
      const valid = [...received.values()].filter(({ payment }) => payment.signed.window.last > latest);
      await Promise.all(valid.map(({ payment }) => settle(payment)));
    },
  };

  function describe({ signed, network, offer }: ReceivedPayment): string {
    return log.describe(signed, offer.network.chainId, network);
  }

  async function handleElsewhere(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    const exchange = log.begin(`${request.method} at another origin`);
    const payment = readPayment(request.headers, offersMade, options.resource);
    if (payment === undefined || "situation" in payment) {
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
    const payment = readPayment(request.headers, offersMade, options.resource);
    const isUnreadable = payment !== undefined && "situation" in payment;
    const paidBy = isUnreadable ? undefined : payment;
    const offers = async () => (await tested.offers?.(scene)) ?? [scene.offer];
    const visit = createVisit(response, { ...options, path, exchange, paidBy, offers, offersMade, track });
    if (header !== undefined && request.headers[header.name.toLowerCase()] !== header.value) {
      return visit.send(401, {}, `the header ${header.name} is missing`);
    }
    if (isUnreadable) return visit.ask({ error: payment.reason, why: payment.fact });
    if (payment === undefined) return tested.unpaid?.(visit) ?? visit.ask();

    const { nonce } = payment.signed;
    const others = [...received].filter(([known]) => known !== nonce).map(([, other]) => other);
    const entry = received.get(nonce) ?? { payment, times: 0 };
    const repeats = entry.times++;
    received.set(nonce, entry);
    exchange.payment = describe(payment);
    // Anyone who holds a signed payment can settle it, so a second payment makes the shop settle the first one too.
    if (repeats === 0) await Promise.all(others.map((other) => settle(other.payment)));
    const paid = createPaidVisit(visit, payment, {
      repeats,
      othersBefore: others.length,
      settle,
    });
    await (tested.paid?.(paid, { slowMs }) ?? paid.sell());
  }
}

/** The shops of all cases, each under its own path. */
export type Shops = Awaited<ReturnType<typeof openShops>>;

/** Listens for the clients of all cases, on two origins. */
export async function openShops() {
  const shops = new Map<string, OpenShop>();
  const listen = async (handle: (shop: OpenShop, ...args: HandlerArguments) => Promise<void>) => {
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
    /** The URL of the shop with this name, and the one on another origin to which it can redirect clients. */
    addressesOf: (name: string) => ({
      resource: `http://127.0.0.1:${own.port}/${name}/report`,
      elsewhere: `http://127.0.0.1:${other.port}/${name}/report`,
    }),
    open: (name: string, shop: OpenShop) => void shops.set(name, shop),
    async [Symbol.asyncDispose]() {
      await Promise.all([closeAtOnce(own.server), closeAtOnce(other.server)]);
    },
  };
}

type HandlerArguments = [request: IncomingMessage, response: ServerResponse, path: string];
