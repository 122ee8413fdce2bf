import { setTimeout as wait } from "node:timers/promises";
import type { Payer } from "../../../src/harness/control/pay.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import type { Operation } from "../../../src/protocol/problems.ts";
import { type JsonResponse, requestJson } from "../../../src/util/http-client.ts";
import { type Balancer, startBalancer } from "../balancer.ts";
import type { Composition } from "../composition.ts";
import { type AnsweredPayment, judgePayments, type Success } from "../operator/judge-payments.ts";
import { apiKey, type ServiceProcess, startServiceProcess } from "../service-process.ts";
import type { Findings } from "../tally.ts";
import { transfersSince } from "../transfers.ts";
import { signInWay, type Way } from "../ways.ts";

/** Several instances of the service on one database, behind a balancer. */
export type Fleet = {
  /** The balancer's origin. */
  origin: string;
  /** Replaces an instance. The new one starts before SIGTERM ends the old one, or after the old one was killed. */
  replace(index: number, how: "SIGTERM" | "SIGKILL"): Promise<void>;
  /**
   * Signs a payment in one of the ways (by default as a new payer if the way needs one, otherwise as `funded`), has it
   * verified, settles it until there is a verdict, and records that.
   */
  pay(way: Way, payer?: Payer): Promise<void>;
  /** Sends a request to one of the instances; undefined if there was no response. */
  ask(operation: Operation, body: unknown): Promise<JsonResponse | undefined>;
  /** From now on every payment must be decided within a minute. */
  troubleIsOver(): void;
  /**
   * Compares the answers with the token's transfers, once all payments are decided.
   *
   * @param replaced the transactions in blocks that were replaced
   */
  judge(replaced?: ReadonlySet<string>): Promise<Findings>;
  readonly payments: number;
  stop(): Promise<void>;
};

type Answered = AnsweredPayment & { successes: Success[]; refusals: string[] };

/** The amount of the first payment, in the asset's smallest unit; each later one pays one more. */
const leastValue = 10_000n;

/** How long a payment may stay undecided after the last fault. */
const decisionMs = 60_000;

export async function startFleet(
  composition: Composition,
  databaseUrl: string,
  { size, rpcUrl }: { size: number; rpcUrl?: string },
): Promise<Fleet> {
  const start = () => startServiceProcess(composition, databaseUrl, { rpcUrl, drainDelayMs: 300 });
  const instances: ServiceProcess[] = [];
  for (let index = 0; index < size; index++) instances.push(await start());
  const balancer: Balancer = await startBalancer(() => instances.map(({ origin }) => origin));
  const payments: { id: Hex; answered: Answered }[] = [];
  let signed = 0;
  const { chain } = composition;
  const since = Number((await chain.node.request("eth_blockNumber")) as Hex);
  let overAt = Number.POSITIVE_INFINITY;

  async function ask(operation: Operation, body: unknown): Promise<JsonResponse | undefined> {
    const headers = { authorization: apiKey };
    // A proxy's own response is not JSON.
    return requestJson(`${balancer.origin}/v1/${operation}`, { method: "POST", headers, body }).catch(
      () => undefined,
    );
  }

  async function judgeNow(replaced: ReadonlySet<string>) {
    const answered = payments.map((payment) => payment.answered);
    const transfers = await transfersSince(chain, since);
    return judgePayments(answered, transfers, chain.facilitatorContract, { replaced });
  }

  /** The service's answer about a settlement. */
  async function inLedger(id: Hex): Promise<unknown> {
    const url = `${balancer.origin}/v1/settlements/${id}`;
    return requestJson(url, { headers: { authorization: apiKey } }).then(({ body }) => body, String);
  }

  return {
    origin: balancer.origin,
    ask,

    async replace(index, how) {
      const old = instances[index];
      if (how === "SIGKILL") await old?.kill();
      const next = await start();
      instances[index] = next;
      if (how === "SIGTERM") await old?.stop();
    },

    async pay(way, given) {
      // Each payment has its own amount, which identifies its transfer.
      const value = leastValue + BigInt(signed++);
      const { body, verifyBody, payer, due, id } = await signInWay(way, {
        chain,
        value,
        ...(given !== undefined && { payer: given }),
      });
      const answered: Answered = {
        ...{ payer, value: due, straight: way.straight, recipient: harnessAccounts.recipient.address },
        ...{ successes: [], refusals: [], saidToBeSettled: false },
      };
      payments.push({ id, answered });
      const verdict = await ask("verify", verifyBody);
      const { isValid, invalidMessage } = Object(verdict?.body);
      if (verdict?.status === 200 && isValid !== true) answered.refusals.push(`verify: ${invalidMessage}`);
      for (;;) {
        const { status, body: told } = (await ask("settle", body)) ?? {};
        const { success, transaction, errorMessage } = Object(told);
        if (status === 200) {
          if (success === true)
            answered.successes.push({ transaction, instance: undefined, at: performance.now() });
          // The success was delivered to the proxy, which lost it.
          else if (/was settled before/.test(errorMessage)) answered.saidToBeSettled = true;
          else answered.refusals.push(errorMessage);
          return;
        }
        if (performance.now() - overAt > decisionMs) return;
        await wait(100);
      }
    },

    troubleIsOver() {
      overAt = performance.now();
    },

    async judge(replaced = new Set()) {
      let verdict = await judgeNow(replaced);
      while (verdict.lost.length > 0 && performance.now() - overAt < decisionMs) {
        await wait(200);
        verdict = await judgeNow(replaced);
      }
      const { lost, twice, wrong, undecided } = verdict;
      // The service's view of these payments, to tell its faults from those of the chain.
      for (const lines of [lost, wrong]) {
        for (const { id, answered } of lines.length === 0 ? [] : payments) {
          if (lines.some((line) => line.startsWith(`${answered.value} `)))
            lines.push(`the ledger of ${answered.value}: ${JSON.stringify(await inLedger(id))}`);
        }
      }
      return { lost: [...lost, ...undecided], paidTwice: twice, wrongAnswers: wrong };
    },

    get payments() {
      return payments.length;
    },

    async stop() {
      await balancer.close();
      await Promise.all(instances.map((instance) => instance.kill()));
    },
  };
}
