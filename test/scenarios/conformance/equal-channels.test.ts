import { privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askNode } from "../../../src/chain/rpc/calls.ts";
import {
  type Difference,
  type FixtureAnswer,
  type FixtureRequest,
  isBegun,
} from "../../../src/fixtures/engine/answer.ts";
import { type MockServer, startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { compareExactly } from "../../../src/judge/conformance/compare.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import { askNextApproval, askNextTransaction } from "../../../src/methods/on-chain/payer-state.ts";
import type { Address } from "../../../src/protocol/hex.ts";
import { channelSequence } from "../../support/conformance/channel-requests.ts";
import { expectedOf } from "../../support/conformance/expected-of.ts";
import { createRandom } from "../../support/random.ts";
import { startTestHarness } from "../../support/service.ts";

/*
 * Random sequences of requests about channels, to the mock server and to the service on a chain: both give the same answers.
 * EQUAL_RUNS=100000 sends more of them than `npm test` does, and EQUAL_SEED others.
 */

const numRuns = Number(process.env.EQUAL_RUNS ?? 300);
const seed = Number(process.env.EQUAL_SEED ?? 45);

let harness: RunningHarness;
let mock: MockServer;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any" });
  mock = await startMockServer({ networks: ["base"], payTo: "any" });
});
afterAll(async () => {
  await mock?.close();
  await harness?.close();
});

async function nextOf(payer: Address, asset: Address) {
  const ask = askNode(harness.chains.base?.rpcUrl ?? "");
  return {
    approval: await askNextApproval(ask, { payer, asset }),
    transaction: await askNextTransaction(ask, payer),
  };
}

/** Compares what both say of a settlement. */
async function compareSettlements(
  { headers }: FixtureRequest,
  ...answers: readonly [FixtureAnswer, FixtureAnswer]
): Promise<readonly Difference[]> {
  const [mocked, actual] = await Promise.all(
    answers.map((answer, index) => {
      const path = isBegun(answer) ? answer.headers.location : undefined;
      const { origin } = new URL(index === 0 ? mock.url : harness.description.facilitator.url);
      return path === undefined ? undefined : sendRequest(origin, { method: "GET", path, headers });
    }),
  );
  return mocked === undefined || actual === undefined ? [] : compareExactly(expectedOf(mocked), actual);
}

test(`${numRuns} requests about channels are answered alike by the mock and the service`, async () => {
  const random = createRandom(seed);
  const { origin } = new URL(harness.description.facilitator.url);
  const found: object[] = [];
  let count = 0;
  for (let sequence = 0; count < numRuns && found.length < 10; sequence++) {
    const now = (await harness.chains.base?.now()) ?? 0n;
    const name = `${seed} ${sequence}`;
    const requests = await channelSequence(random, name, { now, addressOf: privateKeyToAddress, nextOf });
    for (const [step, sent] of requests.entries()) {
      count++;
      const [mocked, actual] = [
        await sendRequest(new URL(mock.url).origin, sent),
        await sendRequest(origin, sent),
      ];
      const differences = [
        ...compareExactly(expectedOf(mocked), actual),
        ...(await compareSettlements(sent, mocked, actual)),
      ];
      if (differences.length === 0) continue;
      found.push({
        name,
        step,
        path: sent.path,
        key: sent.headers.authorization,
        body: sent.body,
        differences,
      });
      // What follows differs too.
      break;
    }
  }
  expect(found).toEqual([]);
}, 3_600_000);
