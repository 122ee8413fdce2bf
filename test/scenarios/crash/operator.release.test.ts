import { afterAll, beforeAll, expect, test } from "vitest";
import { judgePayments, type Verdict } from "../../support/operator/judge-payments.ts";
import type { Payment } from "../../support/operator/payments.ts";
import { runTrouble, seconds } from "../../support/operator/run-trouble.ts";
import { type OperatorStage, startOperatorStage } from "../../support/operator/stage.ts";
import { type Trouble, troubles } from "../../support/operator/troubles.ts";
import { createRandom } from "../../support/random.ts";
import { tally } from "../../support/tally.ts";

/*
 * Three instances of `serve` behind HAProxy, with PgBouncer, Postgres, two endpoints and two keys, and what goes wrong in
 * an operator's bad week. One kind of trouble in `npm test`; `npm run test:endurance -- operator` tries all of them.
 */

const {
  // Names of the table, separated by commas, or `all`.
  OPERATOR_KINDS = "database-killed",
  OPERATOR_PAYMENTS = "24",
  OPERATOR_RATE = "8",
  // Whole rounds go on for so long; one round by default.
  OPERATOR_MINUTES = "0",
  // A payment is decided so long after the end of the trouble, plus the blocks that it needs then.
  OPERATOR_BOUND_SECONDS = "29",
  // `installed`: HAProxy, PgBouncer and Postgres of this machine, where it has them.
  OPERATOR_PROGRAMS = "stand-ins",
  OPERATOR_BLOCK_MS = "500",
} = process.env;

const chosen = chooseKinds(OPERATOR_KINDS);
const payments = Number(OPERATOR_PAYMENTS);
const perSecond = Number(OPERATOR_RATE);
const blockMs = Number(OPERATOR_BLOCK_MS);
/** Blocks for a transaction that is sent at last, for the confirmations that Base has by default, and one more. */
const blocksNeeded = 4;
const boundMs = Number(OPERATOR_BOUND_SECONDS) * 1_000 + blocksNeeded * blockMs;
const roundsMs = Number(OPERATOR_MINUTES) * 60_000;
/** The longest that a kind takes: payments, the last trouble, the wait for answers that are late, and readiness. */
const longestMs = (payments * 1_000) / perSecond + boundMs + 180_000;
const random = createRandom();

type Row = Readonly<Record<"payments" | "troubles", number>> &
  ReturnType<typeof counts> & { "decided after, s": string };

let stage: OperatorStage;
beforeAll(async () => {
  stage = await startOperatorStage({ installed: OPERATOR_PROGRAMS === "installed", blockMs });
}, 120_000);
afterAll(() => stage?.stop());

test(`an operator's troubles: nothing is lost, paid twice or wrongly refused, and all is decided (seed ${random.seed})`, {
  timeout: roundsMs + chosen.length * longestMs,
}, async () => {
  console.log(`Seed ${random.seed}. ${stage.programs}.`);
  const rows: Record<string, Row> = {};
  const made: Payment[] = [];
  const problems: Record<string, readonly string[]> = {};
  const note = (kind: string, verdict: Verdict) => {
    const { handedOverAgain, ...wrongs } = verdict;
    const lines = Object.entries(wrongs).flatMap(([what, found]) => found.map((line) => `${what}: ${line}`));
    if (lines.length > 0) problems[kind] = [...(problems[kind] ?? []), ...lines.slice(0, 20)];
    const { lost, twice, wrong, undecided } = verdict;
    const wrongAnswers = [...wrong, ...undecided];
    tally(`an operator: ${kind}`, { lost, paidTwice: twice, handedOverAgain, wrongAnswers });
  };
  const endAt = performance.now() + roundsMs;
  do {
    for (const trouble of chosen) {
      const plan = { payments, perSecond, boundMs, seed: random.between(0, 2 ** 31) };
      // Each payment of the run has its own value, from 0.01 USDC upwards.
      const firstValue = 10_000n + BigInt(made.length);
      const result = await runTrouble(stage, trouble, { ...plan, firstValue });
      made.push(...result.payments);
      note(trouble.kind, result.verdict);
      const row: Row = {
        payments: result.payments.length,
        troubles: result.troubles,
        ...counts(result.verdict),
        "decided after, s": result.decidedMs === undefined ? "never" : seconds(result.decidedMs),
      };
      rows[`${trouble.kind}${rows[trouble.kind] === undefined ? "" : `, ${made.length}`}`] = row;
      console.log(`${trouble.kind}: ${JSON.stringify(row)}`);
    }
  } while (performance.now() < endAt);

  // Once more when all is over: nothing of an earlier trouble was paid or taken back since.
  const transfers = await stage.transfersSince(0);
  const answered = made.map((payment) => payment.answered);
  const { instances, replaced } = stage;
  const atLast = judgePayments(answered, transfers, stage.contract, { kills: instances.kills, replaced });
  note("all of them, at the end", atLast);
  console.table(rows);
  expect(problems).toEqual({});
  expect(stage.instances.deaths).toEqual([]);
  expect(transfers.length).toBeGreaterThan(made.length);

  // The same judge, on the same chain, would have noticed.
  const one = answered.find(({ value }) => value > 0n);
  if (one === undefined) throw new Error("no payment was made");
  const isTaken = ({ value }: { value: bigint }) => value === one.value;
  const without = transfers.filter((transfer) => !isTaken(transfer));
  expect(judgePayments(answered, without, stage.contract).lost).not.toEqual([]);
  expect(judgePayments(answered, [...transfers, ...transfers], stage.contract).twice).not.toEqual([]);
  const refused = { ...one, refusals: ["made up"] };
  expect(judgePayments([refused], transfers, stage.contract).wrong).not.toEqual([]);
});

function counts({ lost, twice, handedOverAgain, wrong, undecided }: Verdict) {
  return {
    ...{ lost: lost.length, twice: twice.length, "handed over again": handedOverAgain.length },
    ...{ wrong: wrong.length, undecided: undecided.length },
  };
}

function chooseKinds(names: string): readonly Trouble[] {
  if (names === "all") return troubles;
  return names.split(",").map((name) => {
    const trouble = troubles.find(({ kind }) => kind === name);
    if (trouble !== undefined) return trouble;
    throw new Error(
      `OPERATOR_KINDS: there is no trouble "${name}"; there are ${troubles.map(({ kind }) => kind).join(", ")}`,
    );
  });
}
