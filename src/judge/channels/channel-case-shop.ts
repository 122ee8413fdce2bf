import type { IncomingMessage, ServerResponse } from "node:http";
import { finished } from "node:stream/promises";
import type { Hex } from "../../protocol/hex.ts";
import { createSerialQueue } from "../../util/concurrency.ts";
import { createExchangeLog, type Exchange } from "../scene/purchases.ts";
import type { Scene } from "../scene/scene.ts";
import { type ChannelBook, type ChannelPayment, readChannelPayment } from "./channel-book.ts";

/** The deposits and vouchers that the shop received from the client in a case. */
export type ChannelCounts = {
  /** The amount of each distinct signed deposit. */
  deposits: readonly bigint[];
  /** The number of distinct vouchers. */
  vouchers: number;
  /** The vouchers whose ceiling exceeds the previous charges plus the price. */
  tooHigh: readonly { voucher: number; max: bigint; charged: bigint }[];
};

type CaseShopOptions = {
  /** Answers a valid payment that covers the price; by default the shop charges the price and serves. */
  paid?: ((visit: ChannelVisit) => Promise<void>) | undefined;
  scene: Pick<Scene, "studioUrl">;
  book: ChannelBook;
  price: bigint;
  /** The goods; each sale appends its number. */
  goods: string;
  header: { name: string; value: string } | undefined;
};

/** A purchase, with the shop's possible responses. */
export type ChannelVisit = ReturnType<ReturnType<typeof createChannelCaseShop>["visit"]>;

/** Opens the shop of a case, which sells on channels. It handles one request at a time. */
export function createChannelCaseShop({ paid, scene, book, price, goods, header }: CaseShopOptions) {
  const log = createExchangeLog(scene);
  const deposits = new Map<string, bigint>();
  const vouchers: string[] = [];
  const tooHigh: { voucher: number; max: bigint; charged: bigint }[] = [];
  const inTurn = createSerialQueue();
  const failures: unknown[] = [];
  let sold = 0;
  let hasSeenValid = false;

  async function send(
    { response, exchange }: Answering,
    status: number,
    headers: Record<string, string>,
    body: string,
  ): Promise<void> {
    exchange.answer = `${status} ${body}`;
    response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify({ body }));
    await finished(response).catch(() => {});
  }

  const ask = (answering: Answering, challenge: string, why: string) =>
    send(answering, 402, { "PAYMENT-REQUIRED": challenge }, why);

  /** Records what a payment lets the shop take, and describes it. */
  function count({ id, max, deposit }: ChannelPayment): string {
    if (deposit !== undefined && !deposits.has(deposit.key)) deposits.set(deposit.key, deposit.amount);
    const voucher: Hex = `${id}${max}`;
    if (!vouchers.includes(voucher)) {
      vouchers.push(voucher);
      const { charged } = book.channelOf({ id });
      if (max > charged + price) tooHigh.push({ voucher: vouchers.length, max, charged });
    }
    const along =
      deposit === undefined
        ? ""
        : `deposit ${[...deposits.keys()].indexOf(deposit.key) + 1} of ${deposit.amount} and `;
    return `with ${along}voucher ${vouchers.indexOf(voucher) + 1} up to ${max}`;
  }

  function visit(payment: ChannelPayment, answering: Answering) {
    const { charged } = book.channelOf(payment);
    const isFirst = !hasSeenValid;
    hasSeenValid = true;
    const refuse = (reason: string) => ask(answering, book.challenge(reason), reason);
    return {
      price,
      /** The amount charged on the channel before this purchase. */
      charged,
      /** The number of purchases charged before this one. */
      sold,
      /** True for the first valid payment. */
      isFirst,
      /** True if the voucher's ceiling exceeds the previous charges plus the price. */
      isTooHigh: payment.max > charged + price,
      deposit: () => book.settle(payment),
      ask: refuse,
      /** Answers with the 402 that corrects a buyer; `said` replaces values in it. */
      correct: (said?: Parameters<ChannelBook["correction"]>[1]) =>
        ask(answering, book.correction(payment, said), `says that ${said?.charged ?? charged} were charged`),
      /** Charges and serves; `said` replaces sums in the receipt. */
      async sell({
        amount = price,
        said,
        isLost = false,
      }: {
        amount?: bigint;
        said?: Parameters<ChannelBook["receipt"]>[2];
        isLost?: boolean;
      } = {}): Promise<void> {
        const failed = await book.settle(payment);
        if (failed !== undefined) return refuse(failed);
        book.charge(payment, amount);
        sold++;
        if (isLost) {
          answering.exchange.answer = `charges ${amount}, and the connection is reset`;
          answering.response.socket?.resetAndDestroy();
          return;
        }
        const receipt = { "PAYMENT-RESPONSE": book.receipt(payment, amount, said) };
        await send(answering, 200, receipt, `${goods}-${sold}`);
        answering.exchange.answer = `200 goods, charges ${amount}`;
      },
    };
  }

  async function handle(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    request.resume();
    const exchange = log.begin(`${request.method} /${path}`);
    const answering = { response, exchange };
    if (header !== undefined && request.headers[header.name.toLowerCase()] !== header.value) {
      return send(answering, 401, {}, `the header ${header.name} is missing`);
    }
    const payment = readChannelPayment(request.headers);
    if (payment === undefined)
      return ask(answering, book.challenge("a payment is required"), `asks ${price}`);
    exchange.payment = count(payment);
    const refused = await book.refusal(payment);
    if (refused !== undefined) return ask(answering, book.challenge(refused), refused);
    const buying = visit(payment, answering);
    if (payment.max < buying.charged + price) return buying.correct();
    await (paid?.(buying) ?? buying.sell());
  }

  return {
    visit,
    lines: log.lines,
    /** The counts once all requests are answered. Throws errors of the shop itself: they must not count against the client. */
    counts: (): Promise<ChannelCounts> =>
      inTurn(async () => {
        if (failures.length > 0) throw failures[0];
        return { deposits: [...deposits.values()], vouchers: vouchers.length, tooHigh };
      }),
    handle: (request: IncomingMessage, response: ServerResponse, path: string) =>
      inTurn(() => handle(request, response, path)).catch((error: unknown) => {
        failures.push(error);
        throw error;
      }),
    /** Nothing is sold on another origin. */
    async handleElsewhere(request: IncomingMessage, response: ServerResponse): Promise<void> {
      request.resume();
      response.writeHead(404).end();
    },
  };
}

type Answering = { response: ServerResponse; exchange: Exchange };
