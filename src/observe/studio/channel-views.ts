import type { FastifyInstance } from "fastify";
import { voucherIn } from "../../methods/batch-settlement/payloads.ts";
import type { Timeline } from "../timeline/timeline.ts";

/** A channel of scheme “batch-settlement” as the ledger has it: amounts in the token's smallest unit, times in unix seconds. */
export type KeptChannel = {
  id: string;
  network: string;
  organizationId: string;
  payer: string;
  receiver: string;
  asset: string;
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
  /** What was deposited and not refunded. */
  balance: string;
  claimed: string;
  /** The highest voucher that came by here: as much is charged at most, as far as is known. */
  signed: string | null;
  withdrawal: { amount: string; endsAt: number } | null;
};

/** Lists the newest channels. */
export type ListChannels = (limit: number) => Promise<readonly KeptChannel[]>;

const mostChannels = 100;

/** `GET /channels`: the newest channels that were opened here. */
export function channelsRoute(app: FastifyInstance, timeline: Timeline, list: ListChannels): void {
  app.get("/channels", async (_, reply) => {
    const kept = await list(mostChannels);
    const signed = new Map<string, bigint>();
    for (const { request } of kept.length === 0 ? [] : timeline.records()) {
      const voucher = request && voucherIn(request.payment);
      if (voucher === undefined || voucher.maxClaimableAmount <= (signed.get(voucher.channelId) ?? 0n))
        continue;
      signed.set(voucher.channelId, voucher.maxClaimableAmount);
    }
    const channels = kept.map(
      ({ id, network, organizationId, payer, receiver, asset, ...sums }): ChannelView => {
        const { deposited, refunded, claimed, withdrawal } = sums;
        const most = signed.get(id);
        return {
          ...{ id, network, organizationId, payer, receiver, asset },
          balance: `${deposited - refunded}`,
          claimed: `${claimed}`,
          signed: most === undefined ? null : `${most}`,
          withdrawal: withdrawal && { amount: `${withdrawal.amount}`, endsAt: withdrawal.endsAt },
        };
      },
    );
    return reply.header("cache-control", "no-store").send({ channels });
  });
}
