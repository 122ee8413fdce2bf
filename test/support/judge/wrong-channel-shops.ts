import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import {
  type ChannelPayment,
  createChannelBook,
  readChannelPayment,
} from "../../../src/judge/channels/channel-book.ts";
import { channelRequirements } from "../../../src/judge/channels/judge-channel-client.ts";
import type { Scene } from "../../../src/judge/scene/scene.ts";
import { batchSettlementAddress } from "../../../src/methods/batch-settlement/contracts.ts";
import { claimRequests } from "../../../src/methods/batch-settlement/shop-actions.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import { closeAtOnce, listenOnLoopback } from "../../../src/util/node-http.ts";

/*
 * Shops for `judge shop` that sell on channels and run in the test's process: a good one, and others that differ from
 * it by one fault each.
 */

type Purchase = { max: bigint; charged: bigint; balance: bigint; price: bigint; hasDeposit: boolean };

export type ChannelShop = {
  /** Its mistake, in the words of the guide. */
  fault: string;
  /** The case that finds it. */
  foundBy: string;
  /** The amount that it charges; by default the price. */
  amount?(price: bigint): bigint;
  /** Values that replace the true ones in its receipts. */
  says?(price: bigint, total: bigint): { charged?: bigint; total?: bigint };
  hasNoReceipts?: boolean;
  /** True if it claims as much as its vouchers allow. */
  claimsAll?: boolean;
  /** Purchases that it serves without any check. */
  serves?(purchase: Purchase): boolean;
  /** True if it submits no deposits. */
  keepsDeposits?: boolean;
  /** A refusal of its facilitator that it ignores. */
  ignores?: string;
  /** The effect of a restart. */
  restarted?: "forgets" | "refuses";
  /** True if it claims nothing from a channel whose payer withdraws. */
  skipsWithdrawals?: boolean;
};

export const goodChannelShop: ChannelShop = { fault: "none", foundBy: "none" };

export const wrongChannelShops: readonly ChannelShop[] = [
  {
    fault: "says that it has charged twice the price",
    foundBy: "on-one-channel",
    says: (price) => ({ charged: 2n * price }),
  },
  {
    fault: "names a higher total than what it has charged",
    foundBy: "on-one-channel",
    says: (price, total) => ({ total: total + price }),
  },
  {
    fault: "charges half, and claims what the vouchers allow",
    foundBy: "on-one-channel",
    amount: (price) => price / 2n,
    claimsAll: true,
  },
  { fault: "says nothing of what it charges", foundBy: "on-one-channel", hasNoReceipts: true },
  { fault: "serves, and never submits the deposit", foundBy: "on-one-channel", keepsDeposits: true },
  {
    fault: "never compares a voucher with what it has charged",
    foundBy: "beyond-ceiling",
    serves: ({ max, charged, price }) => max < charged + price,
  },
  {
    fault: "never compares a voucher with the deposit",
    foundBy: "beyond-deposit",
    serves: ({ max, balance, hasDeposit }) => !hasDeposit && max > balance,
  },
  {
    fault: "does not look who has signed a voucher",
    foundBy: "voucher-of-stranger",
    ignores: "invalid_batch_settlement_evm_voucher_signature",
  },
  { fault: "claims nothing while its buyer withdraws", foundBy: "withdrawal", skipsWithdrawals: true },
  { fault: "forgets its channels at a restart", foundBy: "restart", restarted: "forgets" },
  { fault: "refuses after a restart the channels from before", foundBy: "restart", restarted: "refuses" },
];

const claimEveryMs = 1_000;

/** Opens a shop that uses a scene's facilitator. */
export async function openChannelShop(shop: ChannelShop, scene: Scene, way: string) {
  const { facilitatorUrl, apiKey, rpcUrl, network } = scene;
  const price = scene.offer.amount;
  const resource = "http://127.0.0.1/report";
  const requirements = channelRequirements(scene, way, resource);
  const openBook = () => createChannelBook({ facilitatorUrl, apiKey, requirements, resource });
  let book = openBook();
  let known = new Map<Hex, ChannelPayment>();
  let hasRestarted = false;
  const old = new Set<Hex>();

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    const ask = (challenge: string) => void response.writeHead(402, { "PAYMENT-REQUIRED": challenge }).end();
    const payment = readChannelPayment(request.headers);
    if (payment === undefined) return ask(book.challenge("a payment is required"));
    if (hasRestarted && old.has(payment.id)) return ask(book.challenge("unknown"));
    const { charged, balance } = book.channelOf(payment);
    const { max, deposit } = payment;
    if (shop.serves?.({ max, charged, balance, price, hasDeposit: deposit !== undefined }) !== true) {
      const refused = await book.refusal(payment);
      if (refused !== undefined && refused !== shop.ignores) return ask(book.challenge(refused));
      if (max < charged + price) return ask(book.correction(payment));
      const failed = shop.keepsDeposits === true ? undefined : await book.settle(payment);
      if (failed !== undefined) return ask(book.challenge(failed));
    }
    const amount = shop.amount?.(price) ?? price;
    book.charge(payment, amount);
    known.set(payment.id, payment);
    const said = shop.says?.(price, book.channelOf(payment).charged);
    const receipt = { "PAYMENT-RESPONSE": book.receipt(payment, amount, said) };
    response.writeHead(200, shop.hasNoReceipts === true ? {} : receipt).end("the goods");
  }

  async function isWithdrawn(id: Hex): Promise<boolean> {
    const data = `0xb7f06ebe${id.slice(2)}`;
    const pending = await createLocalRpc(rpcUrl).request(
      "eth_call",
      { to: batchSettlementAddress, data },
      "latest",
    );
    return BigInt(String(pending)) > 0n;
  }

  async function claim(): Promise<void> {
    for (const { id, config, max, signature } of known.values()) {
      if (shop.skipsWithdrawals === true && (await isWithdrawn(id))) continue;
      const stored = {
        ...{ channelId: id, channelConfig: config, network, signature, totalClaimed: 0n },
        chargedCumulativeAmount: shop.claimsAll === true ? max : book.channelOf({ id }).charged,
        signedMaxClaimable: max,
      };
      for (const { body } of claimRequests([stored])) {
        await fetch(`${facilitatorUrl}/settle`, {
          method: "POST",
          headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
          body: JSON.stringify(body),
        });
      }
    }
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  const timer = setInterval(() => void claim().catch(() => {}), claimEveryMs);
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}/report`;
  return {
    url,
    async restart(): Promise<void> {
      if (shop.restarted === "refuses") {
        hasRestarted = true;
        for (const id of known.keys()) old.add(id);
      }
      if (shop.restarted !== "forgets") return;
      book = openBook();
      known = new Map();
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await closeAtOnce(server);
    },
  };
}
