import type { Rule } from "../../protocol/specification.ts";
import { inParallel } from "../../util/concurrency.ts";

/**
 * The severity of a verdict, worst first.
 * - `wrong`: money moved that should not have, goods were withheld or given away, or a payment was decided against the
 *   public specification;
 * - `not_judged`: the case applies to the program but could not be run;
 * - `differs`: money, goods and verdicts are right, but a response is not as it should be;
 * - `kit`: the response differs from this kit's, on a point that this kit chose freely;
 * - `not_run`: the case does not apply to the program.
 */
export const levels = ["wrong", "not_judged", "differs", "kit", "not_run", "good"] as const;
export type Level = (typeof levels)[number];

/** A situation in which a program is judged: a row of a judge's table. */
export type CaseRow = {
  name: string;
  situation: string;
  /** The behavior of a good program in it. */
  good?: string | undefined;
  /** "early" cases start before the others; "alone" cases would disturb others, so they run last, one at a time. */
  order?: "early" | "alone" | undefined;
};

/** A case: a row, and how to gather the facts about the program. */
export type Case<Facts> = CaseRow & {
  /** Its group in reports: the network, or the operation. */
  suite: string;
  /** @throws {NotRun} if the case cannot say anything about the program */
  run(): Promise<Facts>;
};

/** Why a case was not run; `lacking` names the missing capability. */
export class NotRun extends Error {
  readonly lacking: string | undefined;
  readonly level: "not_run" | "not_judged";
  constructor(why: string, lacking?: string, level: "not_run" | "not_judged" = "not_run") {
    super(why);
    this.lacking = lacking;
    this.level = level;
  }
}

/** The judgment of a case by its facts. */
export type Verdict = {
  verdict: string;
  /** The verdict as text for people. */
  text: string;
  level: Level;
  /** The events of the case, one per line. */
  seen?: readonly string[];
  notes?: readonly string[];
  /** The sentence in the specification that the verdict is based on. */
  rule?: Rule | undefined;
};

export type Finding<Facts = unknown> = CaseRow &
  Verdict &
  Required<Pick<Verdict, "seen" | "notes">> & {
    suite: string;
    /** Undefined if it was not run. */
    facts: Facts | undefined;
    lacking?: string | undefined;
    tookMs: number;
  };

export type RunOptions<Facts> = {
  atOnce: number;
  /** Called after the first case, which runs alone. Returns why the others must not run; undefined to run them. */
  afterFirst?(finding: Finding<Facts>): Promise<string | undefined>;
  onFinding?(finding: Finding<Facts>): void;
};

/** Runs cases and judges the facts of each; returns the findings in the order of the cases. */
export async function runCases<Facts>(
  cases: readonly Case<Facts>[],
  judge: (facts: Facts) => Verdict,
  { atOnce, afterFirst, onFinding }: RunOptions<Facts>,
): Promise<Finding<Facts>[]> {
  const found = new Map<Case<Facts>, Finding<Facts>>();
  let whyNot: string | undefined;
  const run = async (tested: Case<Facts>) => {
    const finding = await runCase(tested, judge, whyNot);
    found.set(tested, finding);
    onFinding?.(finding);
    return finding;
  };
  const [first] = cases;
  if (first !== undefined && afterFirst !== undefined) whyNot = await afterFirst(await run(first));
  const isEarly = ({ order }: Case<Facts>) => Number(order === "early");
  const others = cases.filter((one) => !found.has(one)).toSorted((a, b) => isEarly(b) - isEarly(a));
  const { together = [], alone = [] } = Object.groupBy(others, ({ order }) =>
    order === "alone" ? "alone" : "together",
  );
  await inParallel(together, atOnce, run);
  await inParallel(alone, 1, run);
  return cases.flatMap((one) => found.get(one) ?? []);
}

async function runCase<Facts>(
  { run, ...described }: Case<Facts>,
  judge: (facts: Facts) => Verdict,
  whyNot: string | undefined,
): Promise<Finding<Facts>> {
  const startedAt = performance.now();
  try {
    if (whyNot !== undefined) throw new NotRun(whyNot);
    const facts = await run();
    const tookMs = Math.round(performance.now() - startedAt);
    return { ...described, seen: [], notes: [], ...judge(facts), facts, tookMs };
  } catch (error) {
    if (!(error instanceof NotRun)) throw error;
    const { message, level, lacking } = error;
    const text = level === "not_run" ? "not run" : "not judged";
    const nothing = { seen: [], facts: undefined, tookMs: 0 };
    return { ...described, ...nothing, verdict: level, level, text, notes: [message], lacking };
  }
}
