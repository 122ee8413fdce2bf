import type { DatabaseSync } from "node:sqlite";
import { KitError } from "../../../util/errors.ts";
import type { EngineTransaction, StatementResult } from "../dialect.ts";
import { createSqliteConnection, type SqliteConnection, whileLocked } from "./connection.ts";

/**
 * Connections that only read. In write-ahead mode they see what was committed last and wait for no writer: a
 * transaction that has to wait for a remote signer holds up no payment that is only verified.
 */
export type SqliteReaders = {
  run(sql: string, parameters: readonly unknown[]): Promise<StatementResult>;
  /** Begins a transaction that sees the file as it is at its first read. */
  begin(): Promise<EngineTransaction>;
  close(): void;
};

/** Connections kept open; each snapshot that is being read at the same time needs one of its own. */
const keptReaders = 4;

/** How long a reader waits for a lock, in milliseconds: SQLite asks for one while a process recovers or closes the file. */
const lockTimeoutMs = 10_000;

export function createSqliteReaders(open: () => DatabaseSync): SqliteReaders {
  const idle: SqliteConnection[] = [];

  const take = () => idle.pop() ?? createSqliteConnection(open());
  const giveBack = (reader: SqliteConnection) => {
    if (idle.length < keptReaders) idle.push(reader);
    else reader.close();
  };
  const readTo = <T>(work: () => T) => whileLocked(performance.now() + lockTimeoutMs, work);

  return {
    async run(sql, parameters) {
      const reader = take();
      try {
        return await readTo(() => reader.execute(sql, parameters));
      } finally {
        giveBack(reader);
      }
    },

    async begin() {
      const reader = take();
      reader.execute("BEGIN");
      let ended = false;
      const end = () => {
        if (ended) return;
        ended = true;
        if (reader.isInTransaction) reader.execute("ROLLBACK");
        giveBack(reader);
      };
      return {
        run(sql, parameters) {
          if (ended) throw new KitError("The transaction has ended");
          return readTo(() => reader.execute(sql, parameters));
        },
        commit: async () => end(),
        rollback: end,
      };
    },

    close() {
      for (const reader of idle.splice(0)) reader.close();
    },
  };
}
