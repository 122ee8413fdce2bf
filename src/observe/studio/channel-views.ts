import type { FastifyInstance } from "fastify";
import { voucherIn } from "../../methods/batch-settlement/payloads.ts";
import type { Address } from "../../protocol/hex.ts";
import type { Timeline } from "../timeline/timeline.ts";
import type { PaymentChain } from "./payment-detail.ts";

/** A batch-settlement channel as stored in the ledger: amounts in the token's smallest unit, times in Unix seconds. */
export type KeptChannel = {
  id: string;
  network: string;
  organizationId: string;
  payer: string;
  receiver: Address;
  asset: Address;
  deposited: bigint;
  claimed: bigint;
  refunded: bigint;
  withdrawal: { amount: bigint; endsAt: number } | null;
};

/** A row of `GET /channels`: amounts are decimal strings. */
export type ChannelView = Pick<
  KeptChannel,
  "id" | "network" | "organizationId" | "payer" | "receiver" | "asset"
> & {
  /** Deposits minus refunds. */
  balance: string;
  claimed: string;
  /** The highest voucher seen here, which is the most charged so far as known. */
  signed: string | null;
  /** The sum claimed for the receiver on all its channels and not yet paid out; null if no chain was read. */
  owed: string | null;
  withdrawal: { amount: string; endsAt: number } | null;
};

/** Lists the newest channels. */
export type ListChannels = (limit: number) => Promise<readonly KeptChannel[]>;

const mostChannels = 100;

/** `GET /channels`: the newest channels that were opened here. */
export function channelsRoute(
  app: FastifyInstance,
  { timeline, list, chain }: { timeline: Timeline; list: ListChannels; chain?: PaymentChain | undefined },
): void {
  /** Reads each receiver once. */
  async function readOwed(kept: readonly KeptChannel[]): Promise<(string | null)[]> {
    const asked = new Map<string, Promise<bigint | undefined> | undefined>();
    const owed = kept.map(({ network, receiver, asset }) => {
      const key = `${network} ${receiver} ${asset}`;
      if (!asked.has(key)) asked.set(key, chain?.owed?.(network, receiver, asset));
      return asked.get(key);
    });
    return (await Promise.all(owed)).map((sum) => (sum === undefined ? null : `${sum}`));
  }

  app.get("/channels", async (_, reply) => {
    const kept = await list(mostChannels);
    const signed = new Map<string, bigint>();
    for (const { request } of kept.length === 0 ? [] : timeline.records()) {
      const voucher = request && voucherIn(request.payment);
      if (voucher === undefined || voucher.maxClaimableAmount <= (signed.get(voucher.channelId) ?? 0n))
        continue;
      signed.set(voucher.channelId, voucher.maxClaimableAmount);
    }
    const owed = await readOwed(kept);
    const channels = kept.map(
      ({ id, network, organizationId, payer, receiver, asset, ...sums }, index): ChannelView => {
        const { deposited, refunded, claimed, withdrawal } = sums;
        const most = signed.get(id);
        return {
          id,
          network,
          organizationId,
          payer,
          receiver,
          asset,
          balance: `${deposited - refunded}`,
          claimed: `${claimed}`,
          owed: owed[index] ?? null,
          signed: most === undefined ? null : `${most}`,
          withdrawal: withdrawal && { amount: `${withdrawal.amount}`, endsAt: withdrawal.endsAt },
        };
      },
    );
    return reply.header("cache-control", "no-store").send({ channels });
  });
}
