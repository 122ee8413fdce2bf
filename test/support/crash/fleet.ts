import { setTimeout as wait } from "node:timers/promises";
import { authorizationUsedTopic } from "../../../src/methods/exact-eip3009/on-chain/events.ts";
import { type JsonResponse, requestJson } from "../../../src/util/http-client.ts";
import { type Balancer, startBalancer } from "../balancer.ts";
import type { Composition } from "../composition.ts";
import { inLedger } from "../faults/judge.ts";
import type { Body } from "../service.ts";
import { apiKey, type ServiceProcess, startServiceProcess } from "../service-process.ts";
import type { Findings } from "../tally.ts";

/** Some instances of the service on one database, behind a balancer. */
export type Fleet = {
  /** Of the balancer. */
  origin: string;
  /** Replaces an instance. The new one starts before the old one ends by SIGTERM, or after it was killed. */
  replace(index: number, how: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Pays until there is a verdict, and remembers it. */
  pay(body: Body): Promise<void>;
  /** From now on every payment has to be decided within a minute. */
  troubleIsOver(): void;
  /** Compares the answers with the chain, once all payments are decided. */
  judge(paid: () => Promise<bigint>): Promise<Findings>;
  readonly payments: number;
  stop(): Promise<void>;
};

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
  const answers = new Map<Body, { success?: string; refusal?: string }>();
  let overAt = Number.POSITIVE_INFINITY;

  async function settleOnce(body: Body): Promise<JsonResponse | undefined> {
    const headers = { authorization: apiKey };
    // A proxy's own answer is not JSON.
    return requestJson(`${balancer.origin}/v1/settle`, { method: "POST", headers, body }).catch(
      () => undefined,
    );
  }

  /** The transactions on chain in which an authorization was used, by its nonce. */
  async function usedOnChain(): Promise<ReadonlyMap<string, number>> {
    const { node, asset } = composition.chain;
    const filter = { address: asset.address, fromBlock: "0x0", toBlock: "latest" };
    const logs = await node.request("eth_getLogs", { ...filter, topics: [authorizationUsedTopic] });
    const counts = new Map<string, number>();
    for (const { topics } of logs as { topics: readonly string[] }[]) {
      const nonce = topics[2] ?? "";
      counts.set(nonce, (counts.get(nonce) ?? 0) + 1);
    }
    return counts;
  }

  return {
    origin: balancer.origin,

    async replace(index, how) {
      const old = instances[index];
      if (how === "SIGKILL") await old?.kill();
      const next = await start();
      instances[index] = next;
      if (how === "SIGTERM") await old?.stop();
    },

    async pay(body) {
      const answer: { success?: string; refusal?: string } = {};
      answers.set(body, answer);
      for (;;) {
        const { status, body: told } = (await settleOnce(body)) ?? {};
        const { success, transaction, errorMessage } = Object(told);
        if (status === 200) {
          if (success === true) answer.success = transaction;
          // The success was delivered to the proxy, which lost it.
          else if (!/was settled before/.test(errorMessage)) answer.refusal = errorMessage;
          return;
        }
        if (performance.now() - overAt > decisionMs) return;
        await wait(100);
      }
    },

    troubleIsOver() {
      overAt = performance.now();
    },

    async judge(paid) {
      const findings: Findings = { lost: [], paidTwice: [], wrongAnswers: [] };
      const countOf = (counts: ReadonlyMap<string, number>, body: Body) =>
        counts.get(body.paymentPayload.payload.authorization.nonce.toLowerCase()) ?? 0;
      let counts = await usedOnChain();
      while (
        [...answers.keys()].some((body) => countOf(counts, body) === 0) &&
        performance.now() - overAt < decisionMs
      ) {
        await wait(200);
        counts = await usedOnChain();
      }
      for (const [body, { refusal }] of answers) {
        const { authorization } = body.paymentPayload.payload;
        const { nonce } = authorization;
        const count = countOf(counts, body);
        if (count === 0) {
          const service = { url: `${balancer.origin}/v1`, key: apiKey };
          const ledger = await inLedger(composition, service, authorization).catch(String);
          findings.lost.push(`${nonce}: ${JSON.stringify(ledger)}`);
        }
        if (count > 1) findings.paidTwice.push(nonce);
        if (refusal !== undefined) findings.wrongAnswers.push(`${nonce}: ${refusal}`);
      }
      const sum = await paid();
      const due = BigInt(answers.size) * 10_000n;
      if (sum > due) findings.paidTwice.push(`${sum} was paid instead of ${due}`);
      if (sum < due) findings.lost.push(`${sum} was paid instead of ${due}`);
      return findings;
    },

    get payments() {
      return answers.size;
    },

    async stop() {
      await balancer.close();
      await Promise.all(instances.map((instance) => instance.kill()));
    },
  };
}
