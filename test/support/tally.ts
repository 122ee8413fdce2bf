import { appendFileSync } from "node:fs";
import { afterAll } from "vitest";

/** How a kind of trouble has ended, over all of its repetitions. */
export type Row = {
  kind: string;
  repetitions: number;
  lost: number;
  paidTwice: number;
  wrongAnswers: number;
};

/** What went wrong in one run, one line each. */
export type Findings = { lost: string[]; paidTwice: string[]; wrongAnswers: string[] };

/** Counts what a test file finds, and prints it as a table at the end of the file. */
export function createTally(): { add(kind: string, findings: Findings): void } {
  const rows = new Map<string, Row>();

  afterAll(() => {
    if (rows.size > 0) console.table([...rows.values()]);
    // `npm run test:endurance` puts the tables of all files together.
    const { ENDURANCE_REPORT: report } = process.env;
    if (report === undefined) return;
    for (const row of rows.values()) appendFileSync(report, `${JSON.stringify(row)}\n`);
  });

  return {
    add(kind, { lost, paidTwice, wrongAnswers }) {
      const row = rows.get(kind) ?? { kind, repetitions: 0, lost: 0, paidTwice: 0, wrongAnswers: 0 };
      row.repetitions++;
      row.lost += lost.length;
      row.paidTwice += paidTwice.length;
      row.wrongAnswers += wrongAnswers.length;
      rows.set(kind, row);
    },
  };
}
