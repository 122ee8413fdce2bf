import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { identifierExtension } from "../../../src/fixtures/cases/payment-spec.ts";
import { findScenario, type ScenarioRow, scenarios } from "../../../src/fixtures/cases/scenarios.ts";
import type { FixtureRequest } from "../../../src/fixtures/engine/answer.ts";
import {
  type ScenarioEnvironment,
  serveNetworks,
} from "../../../src/fixtures/engine/scenario-environment.ts";
import { withTestKeys } from "../../../src/harness/run/harness-core.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import type { Database } from "../../../src/ledger/database/database.ts";
import { readRows } from "../../../src/ledger/database/sqlite/memory-databases.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { paymentIdentifierExtension } from "../../../src/protocol/payment-identifier.ts";
import { type Composition, compose, type Running } from "../../support/composition.ts";
import { openMigrated } from "../../support/open-migrated.ts";
import { forwardingTo, startStubNode } from "../../support/stub-node.ts";

/* What requests leave in the database, and on the chain. A caller with an API key may send any number of them. */

let composition: Composition;
let running: Running;
let database: Database;
let environment: ScenarioEnvironment;
beforeAll(async () => {
  composition = await compose();
  await composition.openDirectory();
  running = await composition.start();
  database = await openMigrated(composition.databaseUrl());
  const organizations = withTestKeys(running.service.organizations, ["base"]);
  for (const { apiKey } of Object.values(testKeys)) await organizations.authenticate(apiKey);
  const networks = serveNetworks(["base"]);
  environment = {
    networks,
    network: networks[0],
    keys: testKeys,
    now: () => composition.chain.now(),
    run: "stored rows",
  };
});
afterAll(async () => {
  await database?.destroy();
  await composition?.stopAll();
  await composition?.close();
});

async function countRows(): Promise<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(await readRows(database)).map(([name, rows]) => [name, rows.length]),
  );
}

/** How many rows each table has more, of those that have. */
async function growthSince(before: Readonly<Record<string, number>>): Promise<Record<string, number>> {
  const grown = Object.entries(await countRows()).map(([name, count]) => [name, count - (before[name] ?? 0)]);
  return Object.fromEntries(grown.filter(([, more]) => more !== 0));
}

/** Of the operator, those that wait for a block included. */
function countTransactions(): Promise<unknown> {
  const { address } = harnessAccounts.operator;
  return composition.chain.node.request("eth_getTransactionCount", address, "pending");
}

let sent = 0;

/** The same request under an `Idempotency-Key` and a payment identifier that no other has, where it may have them. */
function asNew({ body = "", headers, ...request }: FixtureRequest): FixtureRequest {
  const id = `request-number-${++sent}`;
  return { ...request, headers: { "idempotency-key": id, ...headers }, body: withIdentifier(body, id) };
}

function withIdentifier(body: string, id: string): string {
  try {
    const { paymentPayload, ...rest } = JSON.parse(body);
    if (paymentPayload.x402Version !== 2) return body;
    const extensions = {
      [paymentIdentifierExtension]: identifierExtension({ id, required: false }),
      ...paymentPayload.extensions,
    };
    return JSON.stringify({ ...rest, paymentPayload: { ...paymentPayload, extensions } });
  } catch {
    return body;
  }
}

const send = (request: FixtureRequest) => sendRequest(new URL(running.url).origin, request);

/** Returns true if a row ends without a claim. */
function isRefused({ cause, outcome, operation }: ScenarioRow): boolean {
  if (cause.by === "fault") return false;
  if (operation === "verify") return true;
  return outcome.kind === "problem" || (outcome.kind === "refusal" && !outcome.again);
}

/** Resources of a request are released right after its answer. */
const soon = <T>(look: () => T) => expect.poll(look, { interval: 5 });

describe("no table grows, and no transaction is sent, by", () => {
  test.each(scenarios.filter(isRefused))("$name", async (scenario) => {
    const { before, request } = await scenario.plan(environment);
    for (const earlier of before) await send(earlier);
    await soon(async () => (await countRows()).leases).toBe(0);
    const rows = await countRows();
    const transactions = await countTransactions();
    for (let repeat = 0; repeat < 3; repeat++) {
      const answer = await send(asNew(request));
      if (scenario.operation === "settle") expect(answer).not.toMatchObject({ body: { success: true } });
    }
    await soon(() => growthSince(rows)).toEqual({});
    expect(await countTransactions()).toBe(transactions);
  });
});

/** A good settle of version 2, of a payment that no other request has. */
async function newSettle(): Promise<FixtureRequest> {
  const { request } = await findScenario("settle.v2.success.funded").plan({
    ...environment,
    run: `payment ${++sent}`,
  });
  return request;
}

describe("no table grows by a settle that", () => {
  test("comes while another organization settles the payment", async () => {
    const request = await newSettle();
    const release = await composition.holdMining();
    composition.proxy.take();
    const first = send(request);
    await composition.untilSent();
    const rows = await countRows();
    const rival = { ...request, headers: { ...request.headers, authorization: testKeys.rival.apiKey } };
    for (let repeat = 0; repeat < 3; repeat++) {
      expect(await send(asNew(rival))).toMatchObject({ body: { success: false } });
    }
    expect(await growthSince(rows)).toEqual({});
    await release();
    expect(await first).toMatchObject({ body: { success: true } });
  });

  test("has no verdict, because no node answers", async () => {
    const node = await startStubNode(forwardingTo(composition.chain.rpcUrl));
    const network = composition.configuration({ rpcUrls: [node.url] });
    const cutOff = await composition.start({ network, settleWaitMs: 1_000 });
    node.behave((_calls, response) => void response.destroy());
    const request = await newSettle();
    const rows = await countRows();
    for (let repeat = 0; repeat < 3; repeat++) {
      const answer = await sendRequest(new URL(cutOff.url).origin, asNew(request));
      expect(answer).toMatchObject({ status: 503 });
    }
    await expect.poll(() => growthSince(rows)).toEqual({});
    await composition.stop(cutOff);
    await node.stop();
  });

  test("is not waited for by its caller, before it is claimed", async () => {
    const node = await startStubNode(forwardingTo(composition.chain.rpcUrl));
    const network = composition.configuration({ rpcUrls: [node.url] });
    const slow = await composition.start({ network });
    const simulated = Promise.withResolvers<void>();
    const unanswered: ServerResponse[] = [];
    node.behave((calls, response) => {
      unanswered.push(response);
      if (calls.some(({ method }) => method === "eth_call")) simulated.resolve();
    });
    const { path, headers, body = "" } = asNew(await newSettle());
    const rows = await countRows();
    const caller = new AbortController();
    const answer = fetch(new URL(path, slow.url), {
      method: "POST",
      headers,
      body,
      signal: caller.signal,
    });
    await simulated.promise;
    // Its lease, and its key.
    expect(await growthSince(rows)).toEqual({ leases: 1, idempotency: 1 });
    caller.abort();
    await expect(answer).rejects.toThrow();
    // Sooner than the service gives the node up.
    node.behave((_calls, response) => void response.destroy());
    for (const response of unanswered) response.destroy();
    await expect.poll(() => growthSince(rows)).toEqual({});
    await composition.stop(slow);
    await node.stop();
  });
});

test("a payment adds a row to each of a few tables, however often it is sent", async () => {
  const request = await newSettle();
  const rows = await countRows();
  const first = asNew(request);
  expect(await send(first)).toMatchObject({ body: { success: true } });
  await expect.poll(async () => (await growthSince(rows)).leases).toBe(undefined);
  const added = await growthSince(rows);
  // The key and the identifier; the payer and the day may be known.
  expect(added).toEqual({
    ...{ settlements: 1, attempts: 1, idempotency: 2 },
    ...("accounts" in added && { accounts: 1 }),
    ...("gas_spending" in added && { gas_spending: 1 }),
  });
  for (let repeat = 0; repeat < 3; repeat++) await send(first);
  for (let repeat = 0; repeat < 3; repeat++) await send(asNew(request));
  await expect.poll(() => growthSince(rows)).toEqual(added);
});

test("docs/scale.md says of every table what adds a row and when it is removed", async () => {
  const guide = await readFile("docs/scale.md", "utf8");
  const [, section = ""] = /## What the database keeps\n(.*)/s.exec(guide) ?? [];
  const named = [...section.matchAll(/^\| `(.*?)` \|/gm)].flatMap(([, tables = ""]) => tables.split("`, `"));
  expect(named.sort()).toEqual(Object.keys(await readRows(database)).sort());
});
