import { randomBytes } from "node:crypto";
// Imported, not global: a test that installs fake timers must not stop its database.
import { setTimeout as delay } from "node:timers/promises";
import { UnansweredError, UndoneError } from "../transactions.ts";
import type { PostgresConnections } from "./postgres-connection.ts";

/**
 * How a commit whose answer was lost is found again. Every transaction that changes something leaves its mark in the
 * table `commits`, in the same message as the commit.
 *
 * | Row of a mark | Meaning | Authority |
 * |---|---|---|
 * | none | not committed so far | |
 * | `fenced` 0 | committed | the transaction itself |
 * | `fenced` 1 | not committed, and never will be: the mark is taken | the instance that asked |
 */
export type CommitMarks = {
  /** A mark that no other transaction has. */
  draw(): string;
  /** The statement that leaves a mark. */
  leave(mark: string): string;
  /**
   * Resolves when the transaction with the mark was committed.
   *
   * @throws UndoneError when it was not, and cannot be any more; UnansweredError when the database does not say.
   */
  findOut(mark: string, lost: Error): Promise<void>;
  /** Takes old marks away, now and then. */
  sweep(): void;
};

/** How long the fate of a commit is asked for: longer than the server keeps a transaction whose owner is gone. */
const inquiryMs = 45_000;
/** The longest pause between two questions. */
const longestPauseMs = 1_000;
/** How long the server's answer is waited for; a mark that is being committed makes it wait. */
const answerTimeoutMs = 20_000;
/** Marks older than this are deleted: no instance asks that late. */
const keptMs = 10 * 60 * 1000;
const sweepEveryMs = 60_000;

export function createCommitMarks(connections: PostgresConnections): CommitMarks {
  let sweptAt = Date.now();

  async function run(sql: string, parameters: readonly unknown[]) {
    const connection = await connections.take();
    try {
      return await connection.run(sql, parameters, answerTimeoutMs);
    } finally {
      connection.release();
    }
  }

  /**
   * Inserting the mark waits for its transaction where that is still under way. Then either it is there, or it is
   * here to stay: should the commit reach the server only now, it fails on this row. Which of the two came first is
   * read from the row, so that asking again after a lost answer gives the same.
   */
  async function wasCommitted(mark: string): Promise<boolean> {
    await run("insert into commits (id, fenced, at) values ($1, 1, $2) on conflict (id) do nothing", [
      mark,
      Date.now(),
    ]);
    const { rows } = await run("select fenced from commits where id = $1", [mark]);
    return rows[0]?.fenced === 0;
  }

  return {
    draw: () => randomBytes(16).toString("hex"),
    leave: (mark) => `insert into commits (id, fenced, at) values ('${mark}', 0, ${Date.now()})`,

    async findOut(mark, lost) {
      const askUntil = performance.now() + inquiryMs;
      for (let pauseMs = 10; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
        try {
          if (await wasCommitted(mark)) return;
          break;
        } catch (error) {
          if (performance.now() > askUntil) {
            throw new UnansweredError("The database did not say whether it kept a change", {
              cause: error,
              hints: ["It became unreachable at the moment of a commit, and stayed so."],
            });
          }
        }
        await delay(pauseMs);
      }
      throw new UndoneError("The connection to the database was lost before a commit", { cause: lost });
    },

    sweep() {
      const time = Date.now();
      if (time - sweptAt < sweepEveryMs) return;
      sweptAt = time;
      // Instances that sweep at once share the work. What is left over is for the next sweep.
      run("delete from commits where id in (select id from commits where at < $1 for update skip locked)", [
        time - keptMs,
      ]).catch(() => {});
    },
  };
}
