import { CompiledQuery } from "kysely";
import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  chainId,
  hashOf,
  openTestLedger,
  operator,
  paymentOf,
  settled,
  signAsIf,
  type TestClock,
  type TestLedger,
} from "../../test/support/ledger/test-ledger.ts";
import type { LedgerTables } from "./rows.ts";
import { attemptsOf } from "./tx-nonces.ts";

/*
 * An operator's txNonces where another program has sent with its key.
 */

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let clock: TestClock;
  let ledger: TestLedger;
  beforeEach(async () => {
    ({ clock, ledger } = await openTestLedger(database, 7));
  });
  const accept = (txNonce: number, actor = "alice") =>
    ledger.acceptTxNonce({ chainId, operator, txNonce }, actor);

  test("goes on from a txNonce that is accepted, and keeps who accepted it", async () => {
    expect(await accept(9)).toBe(true);
    const { attempt } = await ledger.claimAll([paymentOf("a")]);
    expect(attempt?.txNonce).toBe(9);
    expect(await accept(12, "bob")).toBe(true);
    const at = clock.now();
    expect(await ledger.operatorChanges(chainId, operator)).toEqual([
      { at, actor: "alice", from: 7, to: 9 },
      { at, actor: "bob", from: 10, to: 12 },
    ]);
  });

  test("never goes back, and knows no stranger", async () => {
    expect(await accept(7)).toBe(false);
    expect(await accept(3)).toBe(false);
    const stranger = { chainId: 10, operator, txNonce: 5 };
    expect(await ledger.acceptTxNonce(stranger, "alice")).toBe(false);
    expect(await ledger.nextTxNonce(chainId, operator)).toBe(7);
    expect(await ledger.operatorChanges(chainId, operator)).toEqual([]);
  });

  test("accepted by two at once is moved once", async () => {
    expect((await Promise.all([accept(9), accept(9)])).sort()).toEqual([false, true]);
    expect(await ledger.operatorChanges(chainId, operator)).toHaveLength(1);
  });

  test("settlements that leave a txNonce for another close it with the last of them", async () => {
    const [a, b] = [paymentOf("a"), paymentOf("b")];
    await ledger.claimAll([a, b]);
    const from = { chainId, operator, txNonce: 7, mined: null };
    const open = async () =>
      (await ledger.openAttempts(chainId, operator)).map(({ attempt }) => attempt.txNonce);
    expect((await ledger.redrive(from, [a.id], signAsIf))?.attempt.txNonce).toBe(8);
    expect(await open()).toEqual([7, 8]);
    expect((await ledger.redrive(from, [b.id], signAsIf))?.attempt.txNonce).toBe(9);
    expect(await open()).toEqual([8, 9]);
    expect(await ledger.redrive(from, [a.id, b.id], signAsIf)).toBeNull();
    await ledger.mine(8, [settled(a)]);
    expect(await ledger.find(a.id)).toMatchObject({
      state: "settled",
      transactionHash: hashOf("transaction 8"),
    });
    expect(await open()).toEqual([9]);
  });
});

describe("on SQLite", () => {
  const [sqlite] = backends;
  if (sqlite === undefined) throw new Error("there is no database");
  const database = useTestDatabase(sqlite);

  test("the attempts of a txNonce are found by their index, however many the operator has sent", async () => {
    const db = (await database.open()).$extendTables<LedgerTables>();
    const { rows } = await db.transaction().execute((transaction) => {
      const attempts = attemptsOf(transaction, { chainId, operator }, [7]).select("hash").compile();
      const explaining = `explain query plan ${attempts.sql}`;
      return transaction.executeQuery<{ detail: string }>(
        CompiledQuery.raw(explaining, [...attempts.parameters]),
      );
    });
    expect(rows.map(({ detail }) => detail)).toContain(
      "SEARCH attempts USING INDEX attempts_transaction (chain_id=? AND operator=? AND state=? AND tx_nonce=?)",
    );
  });
});
