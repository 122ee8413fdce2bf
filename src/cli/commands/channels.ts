import { readBytes32, readWholeNumber } from "../../config/values.ts";
import type { KnownChannel } from "../../ledger/channels.ts";
import { KitError } from "../../util/errors.ts";
import { renderTable } from "../../util/text.ts";
import { defineCommand, option, textOption } from "../kit/command.ts";
import { usesDatabase, withLedger } from "../kit/with-database.ts";
import { describeSettlement } from "./settlements.ts";

const usualLimit = 50;

export const channelsList = defineCommand({
  ...usesDatabase,
  options: {
    org: textOption("ID", "only those that this organization has opened", {
      example: "org_0123456789abcdef",
    }),
    limit: option("N", `how many at most, newest first (default ${usualLimit})`, {
      read: readWholeNumber(1, 100_000),
      example: "100",
    }),
  },

  run: ({ org: organizationId, limit = usualLimit }, _terminal, { databaseUrl }) =>
    withLedger(databaseUrl, async (ledger) => {
      const channels = (await ledger.channels.list({ organizationId, limit })).map(asRecord);
      const text = renderTable(
        [
          "opened",
          "organization",
          "network",
          { right: "deposited" },
          { right: "claimed" },
          "withdrawal",
          "id",
        ],
        channels.map((channel) => [
          channel.openedAt,
          channel.organizationId,
          channel.network,
          channel.deposited,
          channel.claimed,
          channel.withdrawableAt ?? "",
          channel.id,
        ]),
      );
      return { json: { channels }, text: channels.length === 0 ? "No channels." : text };
    }),
});

export const channelsShow = defineCommand({
  ...usesDatabase,
  options: {
    id: option("ID", "the channel's id, as answers have it", {
      read: readBytes32,
      example: `0x${"0123456789abcdef".repeat(4)}`,
      required: true,
    }),
  },

  run: ({ id }, _terminal, { databaseUrl }) =>
    withLedger(databaseUrl, async (ledger) => {
      const [channel] = await ledger.channels.list({ id, limit: 1 });
      if (channel === undefined) {
        throw new KitError(`There is no channel ${id}`, {
          code: "not-found",
          hints: ["No deposit into it was settled here: only those that were opened here are kept."],
        });
      }
      const record = asRecord(channel);
      return { json: record, text: describeSettlement(record) };
    }),
});

/** A channel for operators: amounts are those the service has moved, in the token's smallest unit; times are UTC. */
function asRecord({ withdrawal, ...channel }: KnownChannel) {
  const { id, network, organizationId, payer, receiver, asset, openedAt, deposited, claimed, refunded } =
    channel;
  return {
    id,
    network,
    organizationId,
    payer,
    receiver,
    asset,
    deposited: `${deposited}`,
    claimed: `${claimed}`,
    refunded: `${refunded}`,
    openedAt: new Date(openedAt).toISOString(),
    withdrawal: withdrawal === null ? null : `${withdrawal.amount}`,
    withdrawableAt: withdrawal === null ? null : new Date(withdrawal.endsAt * 1_000).toISOString(),
  };
}
