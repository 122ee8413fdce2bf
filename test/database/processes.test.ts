import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { chainId, createTestLedger, operator, paymentOf } from "../../src/ledger/testing/test-ledger.ts";
import { backends, useTestDatabase } from "../support/databases.ts";

/** A process of its own that claims. */
const claimMany = join(import.meta.dirname, "../../src/ledger/testing/claim-many.ts");

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);

  let db: Database;
  let ledger: ReturnType<typeof createTestLedger>;
  let children: ChildProcess[] = [];

  beforeEach(async () => {
    db = await database.open();
    ledger = createTestLedger(db, Date.now);
    await ledger.introduce();
  });
  afterEach(() => {
    for (const child of children) child.kill("SIGKILL");
    children = [];
  });

  /** Another process that claims payments of one each, as fast as it can, and prints "nonce outcome txNonce" of each. */
  function claimInAnotherProcess(name: string, payments: number, balance: number) {
    const child = spawn(
      process.execPath,
      [claimMany, database.url, name, String(payments), String(balance)],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    children.push(child);
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    return { child, lines, ended: once(reader, "close") };
  }

  test("three processes share a balance and the txNonces", { timeout: 30_000 }, async () => {
    const processes = ["one", "two", "three"].map((name) => claimInAnotherProcess(name, 150, 100));
    await Promise.all(processes.map(({ ended }) => ended));
    const claims = processes.flatMap(({ lines }) => lines).map((line) => line.split(" "));
    expect(claims).toHaveLength(450);
    const claimed = claims.filter(([, outcome]) => outcome === "claimed");
    expect(claimed).toHaveLength(100);
    expect(new Set(claimed.map(([nonce]) => nonce)).size).toBe(100);
    const txNonces = claimed.map(([, , txNonce]) => Number(txNonce)).sort((a, b) => a - b);
    expect(txNonces).toEqual(Array.from({ length: 100 }, (_, index) => index));
  });

  test("what a killed process reported is in the ledger, and nothing of it is half there", {
    timeout: 30_000,
  }, async () => {
    const { child, lines, ended } = claimInAnotherProcess("killed", 1_000_000, 1_000_000);
    while (lines.length < 200) await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill("SIGKILL");
    await ended;

    const reported = lines.map((line) => line.split(" "));
    for (const [nonce, outcome, txNonce] of reported) {
      expect(outcome).toBe("claimed");
      const settlement = await ledger.find(paymentOf(Number(nonce)).id);
      expect(settlement?.txNonce).toBe(Number(txNonce));
    }
    const open = await ledger.openAttempts(chainId, operator);
    expect(open.map(({ attempt }) => attempt.txNonce)).toEqual(open.map((_, index) => index));
    expect(open.every(({ settlements }) => settlements.length === 1)).toBe(true);
    // The next txNonce follows on the last that was stored.
    const { attempt } = await ledger.claimAll([paymentOf("after", { payer: 2 })]);
    expect(attempt?.txNonce).toBe(open.length);
  });
});
