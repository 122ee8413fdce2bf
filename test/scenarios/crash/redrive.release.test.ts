import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../support/databases.ts";
import { hashesOnChain } from "../../support/faults/judge.ts";
import { startServiceProcess } from "../../support/service-process.ts";
import { type Findings, noFindings, tally } from "../../support/tally.ts";
import { useComposition } from "../../support/use-composition.ts";
import { movingWays, signInWay, zeroWay } from "../../support/ways.ts";

/*
 * A batch that is too large for every node is taken apart, and the process dies when the first of its payments is
 * stored to be sent by itself: the next one sends the others.
 */

/** How often it is tried on each database. */
const repetitions = Number(process.env.REDRIVE_REPETITIONS ?? 1);
const payments = 16;
/** The ways that are tried: four payments of each. */
const batched = 4;
/** Each payment has its own value, by which its transfers are known. */
let value = 10_000n;
/** A settle of one payment has fewer bytes, a batch more. */
const takesBytes = 700;

const composition = useComposition();

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);

  test("killed while a batch that no node takes is sent singly: each payment is settled once", {
    timeout: 60_000 * repetitions,
  }, async () => {
    for (let repetition = 0; repetition < repetitions; repetition++) {
      const before = await composition.recipientBalance();
      const { chain } = composition;
      const signed = await Promise.all(
        // Those that go straight to their recipient share no transaction with the others, nor do the two ways to sign.
        Array.from({ length: payments }, (_, index) =>
          signInWay(movingWays[index % batched] ?? zeroWay, { chain, value: value++ }),
        ),
      );
      const bodies = signed.map(({ body }) => body);
      const first = await startServiceProcess(composition, database.url, { takesBytes });
      const died = once(first.child, "exit");
      const cutOff = bodies.map((body) => first.settle(body).catch(() => undefined));
      let isAlive = true;
      const mining = (async () => {
        while (isAlive) {
          await wait(200);
          await composition.chain.mine();
        }
      })();
      expect((await died)[1]).toBe("SIGKILL");
      await Promise.all(cutOff);

      const second = await startServiceProcess(composition, database.url);
      const findings: Findings = { lost: [], paidTwice: [], wrongAnswers: [] };
      const answers = await Promise.all(
        bodies.map(async (body) => (await second.settleUntilDecided(body)).body),
      );
      for (const [index, payment] of signed.entries()) {
        const { success, errorMessage } = Object(answers[index]);
        // One may have been answered by the process that died.
        if (success !== true && !/was settled before/.test(errorMessage))
          findings.wrongAnswers.push(errorMessage);
        const hashes = await hashesOnChain(composition, payment);
        if (hashes.length === 0) findings.lost.push(JSON.stringify(answers[index]));
        if (hashes.length > 1) findings.paidTwice.push(hashes.join());
      }
      const paid = (await composition.recipientBalance()) - before;
      if (paid !== signed.reduce((sum, { due }) => sum + due, 0n))
        findings.paidTwice.push(`${paid} was paid`);
      isAlive = false;
      await mining;
      await second.stop();
      tally(`killed while a batch that is too large is sent singly, on ${backend.name}`, findings);
      expect(findings).toEqual(noFindings);
    }
  });
});
