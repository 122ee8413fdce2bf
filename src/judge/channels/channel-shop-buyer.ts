import { setTimeout as sleep } from "node:timers/promises";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import { channelId } from "../../methods/batch-settlement/channel.ts";
import {
  createChannelBuyer,
  readSums,
  type SignedPurchase,
} from "../../methods/batch-settlement/channel-buyer.ts";
import { batchSettlementAddress } from "../../methods/batch-settlement/contracts.ts";
import { encodeInitiateWithdraw } from "../../methods/batch-settlement/on-chain/channel-calls.ts";
import { configFor, signPurchase } from "../../methods/batch-settlement/sign-channel.ts";
import { writePayload } from "../../methods/build-request.ts";
import { createPayerSigner } from "../../payer/sign-as.ts";
import { headerOf } from "../../payer/sign-payment.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { decodeHeader } from "../../protocol/payment-headers.ts";
import { parseUint256 } from "../../protocol/wire-values.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { NotRun } from "../frame/run-cases.ts";
import { type CasePayer, payerOf } from "../scene/offers.ts";
import { createExchangeLog } from "../scene/purchases.ts";
import type { Scene } from "../scene/scene.ts";
import { isGood } from "../shop/shop-buyer.ts";
import { type Answer, send, type Terms } from "../shop/shop-payment.ts";

/** How often the shop is asked to claim, and how long to wait for its claims. */
export const claimSeconds = 2;
export const claimWaitMs = 8_000;

/** How long to wait for a deposit that is mined after the goods were delivered. */
const depositWaitMs = 5_000;

/** A delivery, as described by its receipt. */
type Sale = { charged: bigint | undefined; total: bigint | undefined };

type BuyerOptions = {
  scene: Scene;
  payer: CasePayer;
  terms: Terms;
  url: string;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  /** Stops the shop and starts it again; undefined if it was not started here. */
  restart: (() => Promise<void>) | undefined;
};

/** A buyer that keeps a channel at the shop, with its possible actions in a case. */
export type ChannelShopBuyer = ReturnType<typeof createChannelShopBuyer>["buyer"];

/** Creates the buyer of one case and the record of its purchases. */
export function createChannelShopBuyer({ scene, payer, terms, url, headers, ...options }: BuyerOptions) {
  const { network, method: transfer, written, value: price } = terms;
  const { chainId } = network;
  const signer = createPayerSigner(payer.privateKey);
  const rpc = createLocalRpc(scene.rpcUrl);
  const call = (to: Address, data: Hex) => rpc.request("eth_call", { to, data }, "latest");
  const own = createChannelBuyer(signer, { call: (_, to, data) => call(to, data), recover: recoverSigner });
  const { extra } = written;
  const config = configFor(signer, { ...terms, extra });
  const log = createExchangeLog(scene);
  const record = { sales: [] as Sale[], ceiling: 0n, refused: 0, unclaimed: 0n, log };
  const sums = () => readSums(channelId(config, chainId), call);
  const charged = () => record.sales.reduce((sum, one) => sum + (one.charged ?? price), 0n);

  async function sendPayload(payload: object, words: string): Promise<Answer | undefined> {
    const exchange = log.begin("GET");
    exchange.payment = words;
    const { name, value } = headerOf(2, writePayload(terms, payload));
    const { timeoutMs } = options;
    const answer = await send(url, { timeoutMs, headers: { ...headers, [name]: value } });
    exchange.answer = `${answer?.status ?? "no answer"}`;
    if (answer !== undefined && isGood(answer)) {
      const said = membersOf(membersOf(decodeHeader(answer.headers.get("payment-response") ?? "")).extra);
      const sale = {
        charged: amountIn(said.chargedAmount),
        total: amountIn(membersOf(said.channelState).chargedCumulativeAmount),
      };
      record.sales.push(sale);
      exchange.answer += `, charges ${sale.charged ?? "what it does not say"}`;
    }
    return answer;
  }

  /** Polls the channel's sums on chain until the condition holds or the time is over; returns the last ones read. */
  async function until(waitMs: number, isSo: (read: Awaited<ReturnType<typeof sums>>) => boolean) {
    const end = performance.now() + waitMs;
    for (;;) {
      const read = await sums();
      if (isSo(read) || performance.now() > end) return read;
      await sleep(100);
    }
  }

  const note = (request: string, answer: string) =>
    void Object.assign(log.begin(request), { payment: "", answer });

  const buyer = {
    price,
    /**
     * Buys once, with a voucher, and with a deposit if the channel does not cover it.
     *
     * @param options.most the highest deposit
     * @param options.mayRefuse true if the shop need not sell
     */
    async buy({ most, mayRefuse = false }: { most?: bigint; mayRefuse?: boolean } = {}): Promise<void> {
      const validUntil = (await scene.now()) + BigInt(terms.validForSeconds);
      for (let attempt = 1; attempt <= 2; attempt++) {
        const purchase = await own.sign({ ...terms, chainId, transfer, extra, until: validUntil, most });
        const { max, words } = read(purchase.payload);
        if (max > record.ceiling) record.ceiling = max;
        const answer = await sendPayload(purchase.payload, words);
        if (answer !== undefined && isGood(answer))
          return purchase.learn(headerIn(answer, "payment-response"));
        const isToAgain = answer?.status === 402 && recovers(purchase, answer);
        if (!isToAgain) break;
      }
      if (!mayRefuse) record.refused++;
    },
    /** Sends a voucher that must not buy anything: no deposit, this ceiling, signed by the payer unless `by` is given. */
    async sendBad(max: bigint, by = payer): Promise<void> {
      const payload = await signPurchase(createPayerSigner(by.privateKey), { config, chainId, max });
      const whose = by === payer ? "" : " of another key";
      await sendPayload(payload, `with a voucher up to ${max}${whose}`);
    },
    stranger: payerOf(0, `another than ${payer.address}`),
    charged,
    /** Announces on chain that it withdraws the rest of its channel. */
    async withdraw(): Promise<void> {
      for (let attempt = 1; attempt <= 3; attempt++) {
        const { balance, claimed } = await sums();
        const data = encodeInitiateWithdraw(config, balance - claimed);
        // A claim may have been mined in between.
        if ((await scene.sendAs(payer.address, batchSettlementAddress, data)) === undefined) continue;
        return note("announces on chain that it withdraws", "withdrawDelay runs");
      }
      throw new NotRun("the withdrawal could not be announced", undefined, "not_judged");
    },
    claimed: async () => (await sums()).claimed,
    /** Returns the claims and the worth of all vouchers. Waits for the deposit, which may be mined after the delivery. */
    async settled(): Promise<{ claimed: bigint; ceiling: bigint }> {
      const { balance, claimed } = await until(depositWaitMs, (one) => one.balance >= charged());
      return { claimed, ceiling: balance < record.ceiling ? balance : record.ceiling };
    },
    /** Waits until the shop has claimed everything it charged, at most `claimWaitMs`. */
    async waitForClaims(): Promise<void> {
      const { claimed } = await until(claimWaitMs, (one) => one.claimed >= charged());
      record.unclaimed = charged() > claimed ? charged() - claimed : 0n;
      note("reads the chain", `${claimed} were claimed`);
    },
    async restart(): Promise<void> {
      if (options.restart === undefined) throw new NotRun("it needs a shop that is started by a command");
      await options.restart().catch((error: unknown) => {
        throw error instanceof KitError ? new NotRun(error.message, undefined, "not_judged") : error;
      });
      note("restarts the shop", "it listens");
    },
  };
  return { buyer, record };
}

const headerIn = ({ headers }: Answer, name: string) => decodeHeader(headers.get(name) ?? "");

const recovers = (purchase: SignedPurchase, answer: Answer) =>
  purchase.recover(headerIn(answer, "payment-required"));

const amountIn = (value: unknown) =>
  typeof value === "string" ? (parseUint256(value) ?? undefined) : undefined;

function read(payload: object): { max: bigint; words: string } {
  const { voucher, deposit } = membersOf(payload);
  const max = amountIn(membersOf(voucher).maxClaimableAmount) ?? 0n;
  const along = deposit === undefined ? "" : `a deposit of ${membersOf(deposit).amount} and `;
  return { max, words: `with ${along}a voucher up to ${max}` };
}
