/**
 * Whether costs grow with use: many settles and verifies in a row, then the ledger's work with few and with very many
 * settlements, on SQLite and on Postgres. See docs/benchmarks.md.
 *
 * node scripts/bench/growth.ts [SETTLEMENTS [SETTLES [VERIFIES]]] [--write]
 */
import { measureLedgers } from "./growth-ledger.ts";
import { measureRun } from "./growth-run.ts";
import { createReport, sizesGiven } from "./markdown.ts";

const [settlements = 1_000_000, settles = 20_000, verifies = 200_000] = sizesGiven();

const report = createReport("growth");
await measureRun(report, settles, verifies);
await measureLedgers(report, settlements);
report.end();
