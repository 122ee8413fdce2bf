import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/*
 * The long run of what `npm test` tries once: deaths at every step, three instances on one database, and every kind of
 * trouble with chains and RPCs. Ends with a table of what went wrong. Takes half an hour on 2 cores.
 */

const directory = mkdtempSync(join(tmpdir(), "x402-endurance-"));
const report = join(directory, "report");
writeFileSync(report, "");
const { status } = spawnSync(
  "vitest",
  [
    "run",
    "--project",
    "scenarios",
    "test/scenarios/crash",
    "test/scenarios/faults",
    "recovery/kill",
    "lost-answers",
    "hostile-bodies",
  ],
  {
    stdio: "inherit",
    env: {
      KILL_REPETITIONS: "20",
      FAULT_REPETITIONS: "20",
      INSTANCE_PAYMENTS: "2000",
      LOST_ANSWER_REPETITIONS: "20",
      HOSTILE_BODIES: "100000",
      ...process.env,
      ENDURANCE_REPORT: report,
    },
  },
);

type Row = { lost: number; paidTwice: number; wrongAnswers: number };
const rows = new Map<string, Row & { repetitions: number }>();
for (const line of readFileSync(report, "utf8").split("\n").slice(0, -1)) {
  const { kind, lost, paidTwice, wrongAnswers }: Row & { kind: string } = JSON.parse(line);
  const row = rows.get(kind) ?? { repetitions: 0, lost: 0, paidTwice: 0, wrongAnswers: 0 };
  row.repetitions++;
  row.lost += lost;
  row.paidTwice += paidTwice;
  row.wrongAnswers += wrongAnswers;
  rows.set(kind, row);
}
rmSync(directory, { recursive: true });
console.table(Object.fromEntries([...rows].sort(([a], [b]) => a.localeCompare(b))));
process.exitCode = status ?? 1;
