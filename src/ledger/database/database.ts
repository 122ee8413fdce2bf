import type { Kysely } from "kysely";

/*
 * How values are stored, on every database alike:
 * - amounts (uint256) are decimal text: no database has an integer that wide;
 * - times are unix milliseconds, except `valid_first` and `valid_last`, which are the payer's own words: decimal
 *   text of unix seconds;
 * - times, block numbers, chain ids and txNonces are 64-bit integers that stay below 2^53, and are read as numbers;
 * - hex is lower case, so that equal bytes are equal text.
 */

/**
 * An open database. Whose tables are in it is for their owners to say: `database.$extendTables<LedgerTables>()`.
 * `destroy()` finishes what is under way and closes it.
 */
export type Database = Kysely<Record<never, never>>;
