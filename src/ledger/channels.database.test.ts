import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  addressOf,
  chainId,
  failed,
  hashOf,
  openTestLedger,
  paymentOf,
  settled,
  type TestClock,
  type TestLedger,
  until,
} from "../../test/support/ledger/test-ledger.ts";
import type { ChannelRecord } from "../methods/actions.ts";
import { dayMs } from "../protocol/moments.ts";
import { archiveSettlements } from "./archive.ts";
import { type Channels, createChannels } from "./channels.ts";
import type { Database } from "./database/database.ts";
import type { LedgerTables } from "./rows.ts";

/* Channels belong to the organization whose deposit was claimed first, and keep what settled transactions have moved. */

const id = hashOf("a channel");
const [receiver, token, payer] = [addressOf(1), addressOf(2), addressOf(3)];
const opened = { id, receiver, token, payer };

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let clock: TestClock;
  let ledger: TestLedger;
  let db: Database;
  let channels: Channels;
  beforeEach(async () => {
    ({ clock, ledger, db } = await openTestLedger(database));
    channels = createChannels(db.$extendTables<LedgerTables>());
  });

  async function claim(name: string, record: ChannelRecord, changes: { organizationId?: string } = {}) {
    const request = {
      ...paymentOf(name, { amount: 1n, window: until(BigInt(clock.now()) / 1_000n), ...changes }),
      channels: record,
    };
    const { attempt } = await ledger.claimAll([request]);
    return { request, txNonce: attempt?.txNonce ?? -1 };
  }
  const deposit = (name: string, amount: bigint, organizationId = "shop") =>
    claim(name, { opened, moves: [{ kind: "deposit", channel: id, amount }] }, { organizationId });
  const known = async () => (await channels.list({ limit: 10 }))[0];

  test("the first deposit decides whose a channel is", async () => {
    expect(await channels.ownersOf(chainId, [id])).toEqual([undefined]);
    await deposit("first", 5n);
    await deposit("second", 6n, "rival");
    expect(await channels.ownersOf(chainId, [hashOf("another"), id])).toEqual([undefined, "shop"]);
    expect(await channels.ownersOf(10, [id])).toEqual([undefined]);
    const of = { chainId, receiver, asset: token };
    expect(await channels.hasReceiver("shop", of)).toBe(true);
    expect(await channels.hasReceiver("rival", of)).toBe(false);
    expect(await channels.hasReceiver("shop", { ...of, receiver: token })).toBe(false);
  });

  test("nobody else deposits into a channel that is its organization's own", async () => {
    const owned = { opened: { ...opened, isOwned: true }, moves: [] };
    const from = (organizationId: string) => ({
      ...paymentOf(organizationId, {
        amount: 1n,
        window: until(BigInt(clock.now()) / 1_000n),
        organizationId,
      }),
      channels: owned,
    });
    const both = await Promise.all(["shop", "rival"].map((name) => ledger.claimAll([from(name)])));
    expect(both.flatMap(({ outcomes }) => outcomes).sort()).toEqual(["claimed", "taken"]);
    const [owner] = await channels.ownersOf(chainId, [id]);
    const settledBy = { hash: hashOf("others"), blockNumber: 1n, blockHash: hashOf("block") };
    const claimSettled = (name: string, organizationId: string) =>
      ledger.claimNothing(
        { ...paymentOf(name, { amount: 1n, organizationId }), channels: owned },
        ...([1n, 0n, settledBy] as const),
      );
    expect(await claimSettled("late", "third")).toBe("taken");
    expect(await claimSettled("own", owner ?? "")).toBe("claimed");
    expect(await channels.ownersOf(chainId, [id])).toEqual([owner]);
  });

  test("what was moved counts once it is settled, and stays when its settlements are archived", async () => {
    const first = await deposit("first", 5n);
    const second = await deposit("second", 6n);
    const claimed = await claim("claim", { moves: [{ kind: "claim", channel: id, amount: 3n }] });
    expect(await known()).toMatchObject({ id, organizationId: "shop", payer, deposited: 0n, claimed: 0n });
    await ledger.mine(first.txNonce, [settled(first.request)]);
    await ledger.mine(second.txNonce, [failed(second.request)]);
    await ledger.mine(claimed.txNonce, [settled(claimed.request)]);
    expect(await known()).toMatchObject({ deposited: 5n, claimed: 3n, refunded: 0n });
    for (const { request } of [first, claimed]) {
      await ledger.acquireLease(request.id, "shop");
      await ledger.markDelivered(request.id, "shop");
    }
    await db.$extendTables<LedgerTables>().updateTable("settlements").set({ next_look_at: null }).execute();
    clock.advance(400 * dayMs);
    const archived: string[] = [];
    await archiveSettlements(db, clock.now(), async (lines) => void archived.push(...lines));
    expect(archived).not.toEqual([]);
    expect(await ledger.find(first.request.id)).toBe(null);
    expect(await known()).toMatchObject({ deposited: 5n, claimed: 3n, refunded: 0n });
  });

  test("more channels are listed than a statement may have parameters", async () => {
    const { request, txNonce } = await deposit("first", 5n);
    await ledger.mine(txNonce, [settled(request)]);
    const tables = db.$extendTables<LedgerTables>();
    const row = await tables.selectFrom("channels").selectAll().executeTakeFirstOrThrow();
    const others = Array.from({ length: 33_000 }, (_, index) => ({
      ...row,
      id: `0x${index.toString(16).padStart(64, "0")}` as const,
      opened_at: Number(row.opened_at) + 1,
    }));
    for (let from = 0; from < others.length; from += 1_000) {
      await tables
        .insertInto("channels")
        .values(others.slice(from, from + 1_000))
        .execute();
    }
    const listed = await channels.list({ limit: 100_000 });
    expect(listed).toHaveLength(33_001);
    expect(listed.at(-1)).toMatchObject({ id, deposited: 5n });
  });

  test("a withdrawal is news once, and of known channels alone", async () => {
    const withdrawal = { amount: 4n, endsAt: 1_800_000_900 };
    expect(await channels.noteWithdrawal(chainId, id, withdrawal)).toBe(null);
    await deposit("first", 5n);
    expect((await known())?.withdrawal).toBe(null);
    const noted = await Promise.all([1, 2, 3].map(() => channels.noteWithdrawal(chainId, id, withdrawal)));
    expect(noted.filter((one) => one !== null)).toMatchObject([{ id, organizationId: "shop", withdrawal }]);
    const later = { amount: 2n, endsAt: withdrawal.endsAt + 1 };
    expect(await channels.noteWithdrawal(chainId, id, later)).toMatchObject({ withdrawal: later });
    expect(await channels.noteWithdrawal(chainId, id, withdrawal)).toBe(null);
  });
});
