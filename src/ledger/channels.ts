import type { Kysely, Transaction } from "kysely";
import type { ChannelMove } from "../methods/actions.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { type LedgerTables, lowerCase } from "./rows.ts";
import type { Claim } from "./settlement.ts";

/*
 * The channels of “batch-settlement”. The facilitator signs claims and refunds only for the organization that opened a
 * channel. That organization is recorded with the claim of the deposit and never changes.
 */

/**
 * A channel, with the amounts that settled transactions of the service moved in it, in the asset's smallest unit.
 * `claimed` is the highest total they claimed.
 */
export type KnownChannel = {
  id: Hex;
  network: NetworkName;
  chainId: number;
  organizationId: string;
  payer: Address;
  receiver: Address;
  asset: Address;
  openedAt: number;
  deposited: bigint;
  claimed: bigint;
  refunded: bigint;
  withdrawal: Withdrawal | null;
};

/** A withdrawal that the payer of a channel has announced; it can be made from `endsAt`, in unix seconds. */
export type Withdrawal = { amount: bigint; endsAt: number };

/** The channels to list; undefined fields match everything. */
type ChannelFilter = {
  chainId?: number | undefined;
  organizationId?: string | undefined;
  id?: Hex | undefined;
  limit: number;
};

export type Channels = {
  /** Returns the organizations that opened channels, in the given order; undefined for unknown channels. */
  ownersOf(chainId: number, ids: readonly Hex[]): Promise<readonly (string | undefined)[]>;
  /** Returns true if an organization has opened a channel for this receiver and token. */
  hasReceiver(
    organizationId: string,
    of: { chainId: number; receiver: Address; asset: Address },
  ): Promise<boolean>;
  /**
   * Records that the payer of a channel has announced a withdrawal. Returns the channel if it is known and this is
   * news; null if it is unknown, or an instance has recorded it before.
   */
  noteWithdrawal(chainId: number, id: Hex, withdrawal: Withdrawal): Promise<KnownChannel | null>;
  /** Returns true if there are channels on a chain. */
  hasAny(chainId: number): Promise<boolean>;
  /** Lists channels by the time of opening, newest first. */
  list(filter: ChannelFilter): Promise<readonly KnownChannel[]>;
};

export function createChannels(db: Kysely<LedgerTables>): Channels {
  return {
    async ownersOf(chainId, ids) {
      if (ids.length === 0) return [];
      const rows = await db
        .selectFrom("channels")
        .select(["id", "organization_id"])
        .where("chain_id", "=", chainId)
        .where("id", "in", ids.map(lowerCase))
        .execute();
      const owners = new Map<string, string>(rows.map((row) => [row.id, row.organization_id]));
      return ids.map((id) => owners.get(lowerCase(id)));
    },

    async hasReceiver(organizationId, { chainId, receiver, asset }) {
      const row = await db
        .selectFrom("channels")
        .select("id")
        .where("organization_id", "=", organizationId)
        .where("chain_id", "=", chainId)
        .where("receiver", "=", lowerCase(receiver))
        .where("asset", "=", lowerCase(asset))
        .limit(1)
        .executeTakeFirst();
      return row !== undefined;
    },

    async noteWithdrawal(chainId, id, { amount, endsAt }) {
      const noted = await db
        .updateTable("channels")
        .set({ withdrawal_amount: `${amount}`, withdrawal_ends_at: endsAt })
        .where("chain_id", "=", chainId)
        .where("id", "=", lowerCase(id))
        .where(({ eb, or }) =>
          or([eb("withdrawal_ends_at", "is", null), eb("withdrawal_ends_at", "<", endsAt)]),
        )
        .returning("id")
        .executeTakeFirst();
      return noted === undefined ? null : ((await list({ chainId, id, limit: 1 }))[0] ?? null);
    },

    async hasAny(chainId) {
      const any = db.selectFrom("channels").select("id").where("chain_id", "=", chainId).limit(1);
      return (await any.executeTakeFirst()) !== undefined;
    },

    list,
  };

  async function list({ chainId, organizationId, id, limit }: ChannelFilter): Promise<KnownChannel[]> {
    let query = db.selectFrom("channels").selectAll().orderBy("opened_at", "desc").orderBy("id").limit(limit);
    if (chainId !== undefined) query = query.where("chain_id", "=", chainId);
    if (organizationId !== undefined) query = query.where("organization_id", "=", organizationId);
    if (id !== undefined) query = query.where("id", "=", lowerCase(id));
    const rows = await query.execute();
    const sums = await sumMoves(
      db,
      rows.map((row) => row.id),
    );
    return rows.map((row) => {
      const sum = (kind: ChannelMove["kind"]) => sums.get(`${row.chain_id} ${row.id} ${kind}`) ?? 0n;
      return {
        id: row.id,
        network: row.network,
        chainId: Number(row.chain_id),
        organizationId: row.organization_id,
        payer: row.payer,
        receiver: row.receiver,
        asset: row.asset,
        openedAt: Number(row.opened_at),
        deposited: sum("deposit"),
        claimed: sum("claim"),
        refunded: sum("refund"),
        withdrawal:
          row.withdrawal_ends_at === null
            ? null
            : { amount: BigInt(row.withdrawal_amount ?? 0), endsAt: Number(row.withdrawal_ends_at) },
      };
    });
  }
}

/** Databases limit the parameters of a statement: SQLite to 32,766, Postgres to 65,535. */
const mostIds = 10_000;

/**
 * Sums the amounts moved in channels, by chain, channel and kind. A move counts if its settlement is settled, or was
 * archived as such. Claims carry running totals, since several may be pending at once, so the highest counts. Summed
 * here because no database has integers this wide.
 */
async function sumMoves(db: Kysely<LedgerTables>, ids: readonly Hex[]): Promise<ReadonlyMap<string, bigint>> {
  const sums = new Map<string, bigint>();
  for (let from = 0; from < ids.length; from += mostIds) {
    const moves = await db
      .selectFrom("channel_moves as move")
      .leftJoin("settlements", "settlements.id", "move.settlement_id")
      .select(["move.chain_id", "move.channel_id", "move.kind", "move.amount"])
      .where("move.channel_id", "in", ids.slice(from, from + mostIds))
      .where(({ eb, or }) =>
        or([eb("settlements.id", "is", null), eb("settlements.state", "in", ["settled", "recovered"])]),
      )
      .execute();
    for (const { chain_id, channel_id, kind, amount } of moves) {
      const key = `${chain_id} ${channel_id} ${kind}`;
      const sum = sums.get(key) ?? 0n;
      const moved = BigInt(amount);
      if (kind !== "claim") sums.set(key, sum + moved);
      else if (moved > sum) sums.set(key, moved);
    }
  }
  return sums;
}

/** Returns the ids of claims that open a channel of their own which another organization has opened meanwhile. */
export async function findForeign(
  transaction: Transaction<LedgerTables>,
  chainId: number,
  claims: readonly Claim[],
): Promise<ReadonlySet<Hex>> {
  const opening = claims.flatMap(({ id, organizationId, channels }) =>
    channels?.opened?.isOwned ? { id, organizationId, channel: channels.opened.id } : [],
  );
  const owners = await createChannels(transaction).ownersOf(
    chainId,
    opening.map(({ channel }) => channel),
  );
  const foreign = opening.filter(({ organizationId }, index) => {
    const owner = owners[index];
    return owner !== undefined && owner !== organizationId;
  });
  return new Set(foreign.map(({ id }) => id));
}

/** Returns the statements that record what claimed settlements do to channels. Run them in the claiming transaction. */
export function keepingChannels(
  transaction: Transaction<LedgerTables>,
  claims: readonly Claim[],
  openedAt: number,
) {
  const opened = claims.flatMap(
    ({ chainId: chain_id, network, organizationId: organization_id, channels }) => {
      if (channels?.opened === undefined) return [];
      const { id, receiver, token, payer } = channels.opened;
      return {
        chain_id,
        network,
        organization_id,
        opened_at: openedAt,
        id: lowerCase(id),
        payer: lowerCase(payer),
        receiver: lowerCase(receiver),
        asset: lowerCase(token),
      };
    },
  );
  const moves = claims.flatMap(({ id, chainId: chain_id, recipient, asset, channels }) =>
    (channels?.moves ?? []).map(({ kind, channel, amount }) => ({
      settlement_id: lowerCase(id),
      chain_id,
      kind,
      amount: `${amount}`,
      channel_id: channel === null ? `${recipient} ${asset}`.toLowerCase() : lowerCase(channel),
    })),
  );
  return [
    ...(opened.length === 0
      ? []
      : [
          transaction
            .insertInto("channels")
            .values(opened)
            .onConflict((conflict) => conflict.columns(["chain_id", "id"]).doNothing()),
        ]),
    ...(moves.length === 0 ? [] : [transaction.insertInto("channel_moves").values(moves)]),
  ];
}
