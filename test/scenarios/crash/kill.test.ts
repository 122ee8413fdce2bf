import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { settlementId } from "../../../src/protocol/signed-payment.ts";
import type { JsonResponse } from "../../../src/util/http-client.ts";
import { type Composition, compose } from "../../support/composition.ts";
import { boundaries } from "../../support/crash/boundaries.ts";
import { backends, useTestDatabase } from "../../support/databases.ts";
import type { Body } from "../../support/service.ts";
import {
  killServiceProcesses,
  type ServiceProcess,
  startServiceProcess,
} from "../../support/service-process.ts";
import { type Findings, noFindings, tally } from "../../support/tally.ts";

/*
 * kill -9 at every step between claim and answer: the next process ends every settlement in the state that the chain
 * shows, and the payer is charged once.
 */

/** How often each step is tried on each database; the long run sets it to 20. */
const repetitions = Number(process.env.KILL_REPETITIONS ?? 1);

let composition: Composition;
beforeAll(async () => {
  composition = await compose();
});
afterAll(async () => {
  killServiceProcesses();
  await composition.close();
});

const answerOf = ({ status, body }: JsonResponse) => ({
  status,
  ...(body as { success: boolean; transaction: string; errorMessage?: string }),
});

/** Settles again until the lease of the dead process has run out and there is a decided answer. */
async function settleUntilDecided(service: ServiceProcess, body: Body) {
  for (;;) {
    const answer = answerOf(await service.settle(body));
    if (answer.status === 200) return answer;
    await sleep(100);
  }
}

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);

  const name = "killed when %s: charged once, and answered as the chain shows";
  test.each(boundaries)(name, { timeout: 60_000 * repetitions }, async (boundary) => {
    for (let repetition = 0; repetition < repetitions; repetition++) {
      const before = await composition.recipientBalance();
      const body = await composition.payment();
      const { authorization } = body.paymentPayload.payload;

      const first = await startServiceProcess(composition, database.url, { dieAt: boundary });
      const died = once(first.child, "exit");
      const answered = await first.settle(body).then(
        (response) => answerOf(response).success,
        () => false,
      );
      expect((await died)[1]).toBe("SIGKILL");

      const second = await startServiceProcess(composition, database.url);
      const repeat = await settleUntilDecided(second, body);
      const findings: Findings = { lost: [], paidTwice: [], wrongAnswers: [] };
      // Only what was marked as delivered may answer anything but the success.
      if (repeat.success !== (boundary !== "marked as delivered")) {
        findings.wrongAnswers.push(JSON.stringify(repeat));
      }
      if (!answered && !repeat.success) findings.lost.push("the success was never answered");
      const paid = (await composition.recipientBalance()) - before;
      if (paid > 10_000n) findings.paidTwice.push(`${paid} was paid`);
      if (paid < 10_000n) findings.lost.push(`${paid} was paid`);

      const id = settlementId(8453, composition.chain.asset.address, authorization.from, authorization.nonce);
      const { state } = Object((await second.get(`/v1/settlements/${id}`)).body);
      if (state !== "settled") findings.lost.push(`the ledger says ${state}`);
      await second.stop();
      tally(`killed when ${boundary}, on ${backend.name}`, findings);
      expect(findings).toEqual(noFindings);
    }
  });
});
