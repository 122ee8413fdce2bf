import { describe, expect, test } from "vitest";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import type { JsonResponse } from "../../../src/util/http-client.ts";
import { type Boundary, boundaries } from "../../support/crash/boundaries.ts";
import { backends, useTestDatabase } from "../../support/databases.ts";
import { type AnsweredPayment, judgePayments } from "../../support/operator/judge-payments.ts";
import { startServiceProcess } from "../../support/service-process.ts";
import { type Findings, noFindings, tally } from "../../support/tally.ts";
import { transfersSince } from "../../support/transfers.ts";
import { useComposition } from "../../support/use-composition.ts";
import { approvalFirstWay, firstWays, movingWays, signInWay, type Way, zeroWay } from "../../support/ways.ts";

/*
 * kill -9 at every step between claim and answer: the next process ends every settlement in the state that the chain
 * shows, and the payer is charged once, by whatever way.
 */

/** How often each step is tried on each database; the long run sets it to 20. */
const repetitions = Number(process.env.KILL_REPETITIONS ?? 1);

const composition = useComposition();

const answerOf = ({ status, body }: JsonResponse) => ({
  status,
  ...(body as { success: boolean; transaction: Hex | ""; errorMessage?: string }),
});

/** Each payment has its own value, by which its transfers are known. */
let value = 10_000n;

const moving = [...movingWays, ...firstWays, approvalFirstWay];

/** A way to pay: in the short run each is tried at some steps, on one database or the other, in the long run at all of them. */
function wayAt(boundary: Boundary, isPostgres: boolean, repetition: number): Way {
  const ways = ofNothing.has(boundary) ? [...moving, zeroWay] : moving;
  const turn = boundaries.indexOf(boundary) + 3 * Number(isPostgres) + repetition;
  return ways[turn % ways.length] ?? zeroWay;
}

/** The steps of a payment of which nothing is taken: there is no transaction. */
const ofNothing: ReadonlySet<Boundary> = new Set<Boundary>([
  ...(["before the claim", "recorded, not answered"] as const),
  ...(["answered, not marked as delivered", "marked as delivered"] as const),
]);

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);

  const name = "killed when %s: charged once, and answered as the chain shows";
  test.each(boundaries)(name, { timeout: 60_000 * repetitions }, async (boundary) => {
    for (let repetition = 0; repetition < repetitions; repetition++) {
      const way = wayAt(boundary, backend.name === "Postgres", repetition);
      const { body, id, due, payer } = await signInWay(way, { chain: composition.chain, value: value++ });

      // The newest block may hold the payment before this one.
      const since = Number((await composition.chain.node.request("eth_blockNumber")) as Hex) + 1;
      const first = await startServiceProcess(composition, database.url, { dieAt: boundary });
      const given = await first.settleAndDie(body);
      const answer = given && answerOf(given);

      const second = await startServiceProcess(composition, database.url);
      const repeat = answerOf(await second.settleUntilDecided(body));
      const successes = [answer, repeat].flatMap((one) => (one?.success === true ? [one.transaction] : []));
      const answered: AnsweredPayment = {
        ...{ payer, value: due, straight: way.straight, recipient: harnessAccounts.recipient.address },
        // That the process was killed in between is what is tried here.
        successes: [...new Set(successes)].map((transaction) => ({
          transaction,
          instance: undefined,
          at: 0,
        })),
        ...{ refusals: [], saidToBeSettled: false },
      };
      const transfers = await transfersSince(composition.chain, since);
      const { lost, twice, wrong, undecided } = judgePayments(
        [answered],
        transfers,
        composition.chain.facilitatorContract,
      );
      // Only what was marked as delivered may answer anything but the success.
      if (repeat.success !== (boundary !== "marked as delivered")) wrong.push(JSON.stringify(repeat));
      const { state } = Object((await second.get(`/v1/settlements/${id}`)).body);
      if (state !== "settled") lost.push(`the ledger says ${state}`);
      const findings: Findings = { lost: [...lost, ...undecided], paidTwice: twice, wrongAnswers: wrong };
      await second.stop();
      tally(`killed when ${boundary}, on ${backend.name}`, findings);
      expect(findings, way.name).toEqual(noFindings);
    }
  });
});
