import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../../test/support/databases.ts";
import { chainId, createTestLedger, operator, paymentOf } from "../../../test/support/ledger/test-ledger.ts";
import { programFile } from "../../../test/support/programs.ts";
import type { Database } from "./database.ts";

/** A process of its own that claims. */
const claimMany = programFile("test/support/ledger/claim-many.ts");

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
  function claimInAnotherProcess(name: string, payments: number, balance: number, prefix = "") {
    const child = spawn(
      process.execPath,
      [claimMany, database.url, name, String(payments), String(balance), prefix],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    children.push(child);
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    return { child, lines, ended: once(reader, "close") };
  }

  test("three processes share a balance and the txNonces", async () => {
    const processes = ["one", "two", "three"].map((name) => claimInAnotherProcess(name, 80, 60));
    await Promise.all(processes.map(({ ended }) => ended));
    const claims = processes.flatMap(({ lines }) => lines).map((line) => line.split(" "));
    expect(claims).toHaveLength(240);
    const claimed = claims.filter(([, outcome]) => outcome === "claimed");
    expect(claimed).toHaveLength(60);
    expect(new Set(claimed.map(([nonce]) => nonce)).size).toBe(60);
    const txNonces = claimed.map(([, , txNonce]) => Number(txNonce)).sort((a, b) => a - b);
    expect(txNonces).toEqual(Array.from({ length: 60 }, (_, index) => index));
  });

  test("processes that are killed in the middle of their claims lose nothing and leave no gap", {
    timeout: 60_000,
  }, async () => {
    // Each claims payments of its own, whose number begins with its name.
    const start = (name: string) => claimInAnotherProcess(name, 1_000_000, 1_000_000, name);
    let running = ["a", "b", "c"].map(start);
    const all = [...running];
    for (const [round, victim] of [0, 2, 1].entries()) {
      await Promise.all(running.map(({ lines }) => waitForLines(lines, lines.length + 15)));
      const { child, ended } = running[victim] ?? { child: undefined, ended: undefined };
      child?.kill("SIGKILL");
      await ended;
      const next = start(`restarted${round}`);
      all.push(next);
      running = running.map((one, index) => (index === victim ? next : one));
    }
    for (const { child } of running) child.kill("SIGKILL");
    await Promise.all(all.map(({ ended }) => ended));

    const reported = all.flatMap(({ lines }) => lines).map((line) => line.split(" "));
    expect(reported.length).toBeGreaterThan(120);
    const open = await ledger.openAttempts(chainId, operator);
    // Every txNonce was used, by one settlement.
    expect(open.map(({ attempt }) => attempt.txNonce)).toEqual(open.map((_, index) => index));
    expect(open.every(({ settlements }) => settlements.length === 1)).toBe(true);
    const txNonceOf = new Map(
      open.flatMap(({ attempt, settlements }) => settlements.map(({ id }) => [id, attempt.txNonce])),
    );
    for (const [nonce = "", outcome, txNonce] of reported) {
      expect(outcome).toBe("claimed");
      expect(txNonceOf.get(paymentOf(nonce).id)).toBe(Number(txNonce));
    }
    // The next one follows on the last that was stored.
    const { attempt } = await ledger.claimAll([paymentOf("after", { payer: 2 })]);
    expect(attempt?.txNonce).toBe(open.length);
  });

  /** Waits until a process has reported so many claims. */
  async function waitForLines(lines: readonly string[], count: number): Promise<void> {
    while (lines.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
  }
});
