import { appendFileSync } from "node:fs";

/** The faults of one run, one line each. */
export type Findings = {
  lost: string[];
  paidTwice: string[];
  wrongAnswers: string[];
  /** Successes that were returned again after a kill, which is not wrong: docs/decisions/0016-delivery.md. */
  handedOverAgain?: string[];
};

export const noFindings: Findings = { lost: [], paidTwice: [], wrongAnswers: [] };

/** Counts a run of a kind of trouble for the table that `npm run test:endurance` prints at its end. */
export function tally(kind: string, { lost, paidTwice, wrongAnswers, handedOverAgain = [] }: Findings): void {
  const { ENDURANCE_REPORT: report } = process.env;
  if (report === undefined) return;
  const row = {
    ...{ kind, lost: lost.length, paidTwice: paidTwice.length, handedOverAgain: handedOverAgain.length },
    wrongAnswers: wrongAnswers.length,
  };
  appendFileSync(report, `${JSON.stringify(row)}\n`);
}
