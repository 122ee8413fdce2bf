import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { membersOf, parseJson } from "../../../src/util/json.ts";
import { backends, useTestDatabase } from "../../support/databases.ts";
import { createTestLedger, paymentOf, settled, until } from "../../support/ledger/test-ledger.ts";
import { programFile } from "../../support/programs.ts";
import { runHere } from "../../support/run-here.ts";

/*
 * `x402-kit settlements archive`, as an operator runs it.
 */

const claimedAt = Date.parse("2026-01-15");
const before = "2026-02-01";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "x402-kit-archive-"));
    file = join(folder, "2026-01.jsonl");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const archive = (...args: string[]) =>
    runHere(["settlements", "archive", ...args], { DATABASE_URL: database.url });
  const run = (moment = before) => archive("--before", moment, "--out", file);

  const old = (index: number) =>
    paymentOf(`old ${index}`, {
      payer: index,
      amount: 1n,
      window: until(BigInt(claimedAt / 1_000 + 300)),
    });

  /** Settles payments of January, fifty in a transaction, and one that stays: it never expires. */
  async function settleOld(count: number) {
    const ledger = createTestLedger(await database.open(), () => claimedAt);
    await ledger.introduce();
    const lasting = paymentOf("lasting", { payer: 0xffff, amount: 1n, window: until(2n ** 255n) });
    const claims = [lasting, ...Array.from({ length: count }, (_, index) => old(index))];
    for (let from = 0; from < claims.length; from += 50) {
      const batch = claims.slice(from, from + 50);
      const { attempt } = await ledger.claimAll(batch);
      await ledger.mine(attempt?.txNonce ?? -1, batch.map(settled));
      await Promise.all(
        batch.map(async ({ id }) => {
          await ledger.acquireLease(id, `request ${id}`);
          await ledger.markDelivered(id, `request ${id}`);
        }),
      );
    }
    return ledger;
  }
  async function countOf(ledger: ReturnType<typeof createTestLedger>) {
    return (await ledger.list({}, { limit: 10_000 })).settlements.length;
  }
  const linesOf = (kind: string) =>
    readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .filter((line) => line.kind === kind)
      .map(({ row }) => row);

  test("old settlements and their transactions move to the file, and what may still be of use stays", async () => {
    const ledger = await settleOld(260);
    const kept = await ledger.find(old(7).id);
    expect(await run()).toEqual({
      code: 0,
      stderr: "",
      stdout: `260 settlements were moved to ${file}.\n`,
    });
    expect(await countOf(ledger)).toBe(1);
    const { rows: payers } = await sql`SELECT payer FROM accounts`.execute(await database.open());
    expect(payers).toEqual([]);
    const rows = linesOf("settlement");
    expect(new Set(rows.map(({ id }) => id)).size).toBe(260);
    expect(rows.find(({ id }) => id === kept?.id)).toMatchObject({
      state: "settled",
      amount: "1",
      signature: kept?.signature,
      transaction_hash: kept?.transactionHash,
      claimed_at: claimedAt,
    });
    // That of the one that stays is of use.
    expect(linesOf("attempt").map(({ tx_nonce }) => tx_nonce)).toEqual([1, 2, 3, 4, 5]);
    expect(readdirSync(folder)).toEqual(["2026-01.jsonl"]);
    expect(statSync(file).mode & 0o777).toBe(0o600);

    // Once more: there is nothing left to do, and nothing changes.
    const text = readFileSync(file, "utf8");
    expect((await run()).stdout).toBe("There is nothing to archive; nothing was written.\n");
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  test("one that was killed before it removed, with its last line cut short, is gone on with by the same command", async () => {
    await settleOld(60);
    await run();
    const cut = readFileSync(file, "utf8").slice(0, -30);
    await database.clear();
    const again = await settleOld(60);
    expect(await countOf(again)).toBe(61);
    writeFileSync(file, cut);
    expect((await run()).stdout).toContain("60 settlements were moved");
    expect(await countOf(again)).toBe(1);
    const [torn, ...later] = readFileSync(file, "utf8")
      .slice(cut.lastIndexOf("\n") + 1)
      .trim()
      .split("\n");
    expect(() => JSON.parse(torn ?? "")).toThrow();
    const ids = later.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "settlement");
    expect(new Set(ids.map(({ row }) => row.id)).size).toBe(60);
  });

  test("a kill in the midst of it loses no settlement, and the same command ends the work", async () => {
    const ledger = await settleOld(400);
    const child = spawn(
      process.execPath,
      [programFile("src/cli/bin.ts"), "settlements", "archive", "--before", before, "--out", file],
      { env: { ...process.env, DATABASE_URL: database.url }, stdio: "ignore" },
    );
    const ended = once(child, "exit");
    await vi.waitUntil(() => existsSync(file), { interval: 2, timeout: 30_000 });
    child.kill("SIGKILL");
    await ended;
    expect((await run()).code).toBe(0);
    expect(await countOf(ledger)).toBe(1);
    const inFile = readFileSync(file, "utf8").split("\n").map(parseJson).map(membersOf);
    const ids = inFile.filter(({ kind }) => kind === "settlement").map(({ row }) => membersOf(row).id);
    expect(new Set(ids).size).toBe(400);
  });

  test("the next months may go to the same file", async () => {
    await settleOld(3);
    await run();
    await database.clear();
    await settleOld(4);
    expect((await run("2026-03-01")).stdout).toContain("4 settlements were moved");
    expect(linesOf("settlement")).toHaveLength(7);
  });

  test("nothing to archive: no file", async () => {
    await settleOld(3);
    expect(await run("2026-01-01")).toMatchObject({
      code: 0,
      stdout: "There is nothing to archive; nothing was written.\n",
    });
    expect(existsSync(file)).toBe(false);
  });

  test("bad input is refused before anything changes", async () => {
    const ledger = await settleOld(3);
    const refusalOf = async (exit: number, ...args: string[]) => {
      const { code, stderr } = await archive(...args);
      expect(code).toBe(exit);
      return stderr;
    };
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    expect(await refusalOf(2, "--before", yesterday, "--out", file)).toContain(
      "--before: must be at least 7 days ago",
    );
    expect(await refusalOf(2, "--before", "last week", "--out", file)).toContain('"last week" is not a time');
    expect(await refusalOf(2, "--before", before)).toContain("--out");
    expect(await refusalOf(2, "--out", file)).toContain("--before");
    const nowhere = join(folder, "no", "where.jsonl");
    expect(await refusalOf(4, "--before", before, "--out", nowhere)).toContain(
      `The archive ${nowhere} could not be written, and what it lacks is in the ledger`,
    );
    const unreadable = await refusalOf(1, "--before", before, "--out", folder);
    expect(unreadable).toContain(`The archive ${folder} could not be read`);
    expect(unreadable).not.toContain("unforeseen");
    writeFileSync(file, "something else\n");
    expect(await refusalOf(1, "--before", before, "--out", file)).toContain(
      `${file} exists, and is no archive of settlements`,
    );
    expect(readFileSync(file, "utf8")).toBe("something else\n");
    rmSync(file);
    expect(await countOf(ledger)).toBe(4);
  });
});
