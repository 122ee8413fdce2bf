import { execFile } from "node:child_process";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { strangerAddress } from "../../../src/fixtures/cases/payment-spec.ts";
import { findScenario } from "../../../src/fixtures/index.ts";
import { startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { type PaymentSpec, pay } from "../../../src/harness/control/pay.ts";
import { describeFaults } from "../../../src/harness/faults/faults.ts";
import { connectHarness } from "../../../src/harness/index.ts";
import {
  encodeCancellation,
  encodeSubmission,
} from "../../../src/methods/exact-eip3009/on-chain/token-calls.ts";
import { parsePaymentRequest } from "../../../src/methods/methods.ts";
import { channels } from "../../../src/observe/channels/channels.ts";
import { requestTimeOf, vitestOf } from "../../../src/observe/studio/page/snippets.ts";
import {
  type PaymentDetail,
  paymentAnswerSchema,
  paymentListSchema,
  transactionViewSchema,
} from "../../../src/observe/timeline/payment-view.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { bodyLimit } from "../../../src/protocol/problems.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { type Body, post, sendFrom, signedRequest, startTestHarness } from "../../support/service.ts";
import { useStudio } from "../../support/studio.ts";

/*
 * The studio of a running `up`: what it tells over HTTP. What a person sees is in the tests of its page.
 */

const studio = useStudio();
const { payAs, get, list, detailOf } = studio;

/** Runs what is copied of a payment as vitest does, but for the imports and the harness, which is this one. */
async function runCopied(payment: PaymentDetail, connected: object, contract?: string): Promise<void> {
  const runs: Promise<void>[] = [];
  const testHere = (_: string, run: (context: object) => Promise<void>) =>
    runs.push(run({ harness: connected }));
  new Function("test", "expect", vitestOf(payment, contract).replace(/^import .*$/gm, ""))(testHere, expect);
  expect(runs).toHaveLength(1);
  await Promise.all(runs);
}

test("a payment that went straight to a wallet is copied as a test that makes it again", async () => {
  await using straight = await startTestHarness({ networks: ["base"], studio: true, payTo: "any" });
  const { facilitator, networks } = straight.description;
  const connected = await connectHarness(facilitator.url, ["base"]);
  const payTo = "0x00000000000000000000000000000000DeaDBeef";
  await pay(straight.description, { network: "base", payTo });
  const at = new URL(facilitator.url).origin;
  const { payments } = Object(await (await fetch(`${at}/payments`)).json());
  const { payment } = Object(await (await fetch(`${at}/payments/${payments[0].id}`)).json());
  const copied = vitestOf(payment, networks.base?.facilitatorContract);
  expect(copied).toContain(`payTo: "${payTo}"`);
  expect(copied).toContain('createGlobalSetup({ payTo: "any" })');
  await runCopied(payment, connected, networks.base?.facilitatorContract);
  expect(await connected.networks.base.balanceOf(payTo)).toBe(20_000n);
});

describe("over HTTP", () => {
  test.each(
    describeFaults().kinds.flatMap(({ places, ...kind }) =>
      places.map((place) => ({ ...kind, place: place === "facilitator" ? place : "base" })),
    ),
  )("$kind ($place) can be set as it is offered, and is gone when it is cleared", async (one) => {
    const { kind, place, lasts, fields } = one;
    const control = async (action: string, body: object) =>
      (await requestJson(`${studio.origin}/harness/faults/${action}`, { method: "POST", body })).body;
    const given = fields
      .filter(({ needed }) => needed)
      .map(({ name, type, example }) => [name, type === "integer" ? Number(example) : example]);
    if (kind === "reorg") await studio.harness.chains.base?.mine(5);
    const set = await control("add", { network: place, kind, ...Object.fromEntries(given) });
    expect(set).toMatchObject({ kind, network: place });
    const listed = lasts ? [expect.objectContaining({ kind, network: place })] : [];
    expect(await control("list", {})).toEqual({ faults: listed });
    await control("clear", {});
    expect(await control("list", {})).toEqual({ faults: [] });
    expect((await payAs("funded")).settle.body).toMatchObject({ success: true });
  });

  test("a payment that settled is told from the request to its delivery, in order", async () => {
    await payAs("funded");
    const [payment] = await list();
    expect(payment).toMatchObject({
      network: "base",
      payerName: "funded",
      amount: "10000",
      verify: { outcome: "valid", status: 200, count: 1 },
      settle: { outcome: "settled", status: 200, count: 1 },
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    const { timeline, explanations, signed, required } = await detailOf(payment?.id ?? "");
    expect((await detailOf(payment?.transaction ?? "")).id).toBe(payment?.id);
    const told = timeline.map(({ kind, title }) => `${kind} ${title}`);
    for (const expected of [
      "request POST /v1/verify",
      "answer verify: valid",
      "request POST /v1/settle",
      "ledger claimed",
      "transaction broadcast",
      "ledger settled",
      "answer settle: settled",
    ]) {
      expect(told).toContain(expected);
    }
    expect(told.indexOf("ledger claimed")).toBeGreaterThan(told.indexOf("request POST /v1/settle"));
    expect(timeline.some(({ kind }) => kind === "rpc")).toBe(true);
    expect(explanations).toEqual([]);
    expect(signed?.value).toBe(required?.amount);
  });

  test("the newest answers are told as they were sent", async () => {
    const { verify, settle } = await payAs("funded");
    const refused = await payAs("empty");
    const told = (await list()).map(async ({ id }) =>
      (await detailOf(id)).answers.map(({ operation, status, body }) => [
        operation,
        status,
        JSON.parse(body),
      ]),
    );
    expect(await Promise.all(told)).toEqual([
      [
        ["verify", 200, refused.verify.body],
        ["settle", 200, refused.settle.body],
      ],
      [
        ["verify", 200, verify.body],
        ["settle", 200, settle.body],
      ],
    ]);
  });

  test.each([
    ["/payments?limit=-1", "limit must be a whole number"],
    ["/payments?limit=abc", "limit must be a whole number"],
    ["/payments?limit=10001", "limit must be a whole number"],
    ["/payments?network=foo", "network"],
    ["/events?bogus=1", "bogus"],
  ])("%s is refused, and the parameter named", async (path, problem) => {
    const response = await fetch(`${studio.origin}${path}`);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(problem);
  });

  test("a payment sent again with a wrong body is told of the body, not of the payment", async () => {
    await payAs("funded");
    const [payment] = await list();
    const again = (id: string, body: object) =>
      fetch(`${studio.origin}/payments/${id}/again`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const wrong = await again(payment?.id ?? "", { edit: 5 });
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining("The body is")]);
    expect((await again(`0x${"00".repeat(32)}`, { operation: "verify" })).status).toBe(404);
  });

  test("a control request that cannot be read is refused as its sender's mistake", async () => {
    const control = async (body: string, type = "application/json") => {
      const headers = { "content-type": type };
      const response = await fetch(`${studio.origin}/harness/pay`, { method: "POST", headers, body });
      return [response.status, await response.json()];
    };
    const refusal = (error: string) => ({
      error: expect.stringContaining(error),
      ...{ code: "configuration", because: [], hints: [] },
    });
    expect(await control("{}", "text/plain")).toEqual([415, refusal("application/json")]);
    expect(await control("{")).toEqual([400, refusal("not JSON")]);
    expect(await control(JSON.stringify("x".repeat(2_000_000)))).toEqual([413, refusal("too large")]);
    const [status, body] = await control('{"network":"base","payer":"nobody","amount":"1"}');
    expect([status, body]).toEqual([400, refusal('payer: must be "funded"')]);
    expect(JSON.stringify(body)).not.toContain("✖");
  });

  test("a fault stands in the story of the payment that it hit, at its place, and in no other's", async () => {
    const hits: { isHit: boolean }[][] = [];
    const unsubscribe = channels.fault.subscribe(({ calls }) => hits.push([...calls]));
    const control = (path: string, body: object) =>
      fetch(`${studio.origin}/harness/faults/${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const error = { code: -32_000, message: "header not found" };
    await control("add", { network: "base", kind: "error", method: "eth_call", nth: 1, ...error });
    const [hit, spared] = [await signedRequest(studio.harness), await signedRequest(studio.harness)];
    await Promise.all([post(studio.harness, "verify", hit), post(studio.harness, "verify", spared)]);
    unsubscribe();
    const stories = await Promise.all((await list()).map(({ id }) => detailOf(id)));
    const faulted = stories.filter(({ timeline }) => timeline.some(({ kind }) => kind === "fault"));
    expect(hits).toHaveLength(1);
    expect(hits[0]?.filter(({ isHit }) => isHit)).toHaveLength(1);
    expect([stories.length, faulted.length]).toEqual([2, 1]);
    const told = faulted[0]?.timeline.map(({ kind }) => kind) ?? [];
    expect(told.indexOf("fault")).toBeGreaterThan(told.indexOf("request"));
    expect(told.indexOf("fault")).toBeLessThan(told.indexOf("rpc"));
  });

  test("a fault of the chain is told of the payments that it hit, and of no other under way", async () => {
    const control = async (path: string, body: object) =>
      z
        .object({ id: z.string() })
        .or(z.object({ removed: z.boolean() }))
        .parse((await requestJson(`${studio.origin}/harness/faults/${path}`, { method: "POST", body })).body);
    const faultsOf = async (id: string | undefined) =>
      (await detailOf(id ?? "")).timeline.flatMap(({ kind, title }) => (kind === "fault" ? [title] : []));
    const idOf = async (body: Body) => {
      const parsed = parsePaymentRequest(body);
      return parsed.ok ? parsed.request.settlementId : "";
    };
    // Enough for the reorganization below.
    await studio.harness.chains.base?.mine(5);
    const [held, verified] = [await signedRequest(studio.harness), await signedRequest(studio.harness)];
    await post(studio.harness, "verify", held);
    const fault = await control("add", { network: "base", kind: "hold-blocks" });
    const settling = post(studio.harness, "settle", held);
    await post(studio.harness, "verify", verified);
    await expect.poll(async () => faultsOf(await idOf(held))).toEqual(["hold-blocks"]);
    await control("remove", fault);
    expect((await settling).body).toMatchObject({ success: true });

    await control("add", { network: "base", kind: "reorg", depth: 3 });
    const of = [await faultsOf(await idOf(held)), await faultsOf(await idOf(verified))];
    expect(of).toEqual([["hold-blocks", "reorg"], []]);
  });

  test("the transaction of payments is told decoded: call, fee, block and events, without signatures", async () => {
    const bodies = await Promise.all([1, 2].map(() => signedRequest(studio.harness)));
    for (const { paymentPayload } of bodies)
      paymentPayload.extensions = { "builder-code": { info: { s: ["bc_buyer"] } } };
    await Promise.all(bodies.map((body) => post(studio.harness, "settle", body)));
    const [payment] = await list();
    const raw = await get(`/payments/${payment?.id}/transaction`);
    const { call, mined, hash, to } = transactionViewSchema.parse(raw);
    expect(hash).toBe(payment?.transaction);
    expect(to?.toLowerCase()).toBe(
      studio.harness.description.networks.base?.facilitatorContract.toLowerCase(),
    );
    expect(call?.name).toMatch(/^settle(Batch)?$/);
    expect(call?.codes).toEqual({ services: ["bc_buyer"] });
    expect(call?.payments.map(({ payer }) => payer.toLowerCase())).toContain(payment?.payer?.toLowerCase());
    expect(call?.payments[0]).toMatchObject({
      value: "10000",
      recipient: studio.harness.description.organization.recipient,
    });
    expect(mined).toMatchObject({ succeeded: true, fee: expect.stringMatching(/^[1-9]\d+$/) });
    expect(BigInt(mined?.fee ?? 0)).toBe(BigInt(mined?.gasUsed ?? 0) * BigInt(mined?.gasPrice ?? 0));
    expect(mined?.events.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["AuthorizationUsed", "Transfer", "Settled"]),
    );
    for (const body of bodies) {
      expect(JSON.stringify(raw)).not.toContain(body.paymentPayload.payload.signature.slice(2, 66));
    }
    await post(studio.harness, "verify", await signedRequest(studio.harness));
    const unsettled = (await list())[0]?.id;
    const none = await fetch(`${studio.origin}/payments/${unsettled}/transaction`);
    expect([none.status, await none.text()]).toEqual([409, expect.stringContaining("no transaction")]);
  });

  test.each([
    ["funded", {}],
    ["funded", { validBefore: "now-5" }],
    ["funded", { validAfter: "now+60" }],
    ["funded", { validAfter: "1790000000000" }],
    ["funded", { validBefore: "now+7200" }],
    ["empty", {}],
    ["hijacked", {}],
    ["fickle", {}],
    ["undeployedWallet", {}],
    ["funded", { movedBy: 3_600 }],
    ["funded", { movedBy: 3_600, validBefore: "now-5" }],
    ["funded", { movedBy: 3_600, validBefore: "now+7200" }],
    ["empty", { movedBy: 3_600, validBefore: "now+60" }],
    ["hijacked", { movedBy: 3_600, validBefore: "now-5" }],
    ["fickle", { movedBy: 3_600 }],
  ])(
    "a payment of %s (%o) that is copied as a test is paid and answered by it as it was, in both versions",
    async (payer, {
      movedBy = 0,
      ...times
    }: { movedBy?: number; validBefore?: string; validAfter?: string }) => {
      const connected = await connectHarness(studio.harness.description.facilitator.url, ["base"]);
      if (movedBy > 0) {
        // The service has seen the chain before.
        await payAs("funded");
        await studio.harness.chains.base?.advanceTime(movedBy);
      }
      for (const x402Version of [1, 2]) {
        const body = { network: "base", payer, amount: "777", units: true, x402Version, ...times };
        await requestJson(`${studio.origin}/harness/pay`, { method: "POST", body });
        const before = await detailOf((await list())[0]?.id ?? "");
        const { seconds, clock } = requestTimeOf(before);
        expect(clock).toBe("chain");
        expect(Math.abs(seconds - Number(await studio.harness.chains.base?.now()))).toBeLessThan(60);
        expect(vitestOf(before).includes("validBefore")).toBe("validBefore" in times);
        await runCopied(before, connected);
        const [after] = await list();
        expect(after?.id).not.toBe(before.id);
        expect(after).toMatchObject({
          ...{ payer: before.payer, amount: before.amount, x402Version },
          settle: { outcome: before.settle?.outcome, reason: before.settle?.reason },
        });
      }
    },
  );

  test.each<[string, PaymentSpec["payer"] & string, Partial<PaymentSpec>, RegExp]>([
    ["as it is", "funded", {}, /method: "permit2"/],
    ["that is not approved", "unapproved", {}, /errorReason: "permit2_allowance_required"/],
    ["without money", "empty", {}, /errorReason: "permit2_insufficient_balance"/],
    ["for another amount", "funded", { permit: { amount: 9n } }, /permit: { amount: 9n }/],
    ["that expired", "funded", { permit: { deadline: 1_000n } }, /permit: { deadline: 1000n }/],
    ["of scheme upto", "funded", { scheme: "upto", max: 700n, amount: 300n }, /scheme: "upto",\s+max: 700n/],
    ["in another token", "funded", { asset: "usdt" }, /asset: "usdt",\s+method: "permit2"/],
    ["of which nothing is taken", "funded", { scheme: "upto", amount: 0n }, /success: true/],
  ])(
    "a payment by Permit2 %s is told and copied as a test that makes it again",
    async (_, payer, spec, line) => {
      const connected = await connectHarness(studio.harness.description.facilitator.url, ["base"]);
      await pay(studio.harness.description, { network: "base", method: "permit2", payer, ...spec });
      const before = await detailOf((await list())[0]?.id ?? "");
      expect(before.signedMembers.map(({ label }) => label)).toContain("witness.to");
      expect(vitestOf(before)).toMatch(line);
      const takesLess = "scheme" in spec;
      expect(before.charge).toBe(takesLess ? `${spec.amount}` : null);
      if (takesLess) expect(before.amount).toBe(`${spec.max ?? before.amount}`);
      await runCopied(before, connected);
      const [after] = await list();
      expect(after?.id).not.toBe(before.id);
      expect(after).toMatchObject({
        ...{ payer: before.payer, amount: before.amount },
        settle: { outcome: before.settle?.outcome, reason: before.settle?.reason },
      });
    },
  );

  test.each([0, 3_600])(
    "a settle that was asked for again %i s later is copied as a test that asks again, in both versions",
    async (movedBy) => {
      const connected = await connectHarness(studio.harness.description.facilitator.url, ["base"]);
      for (const x402Version of [1, 2] as const) {
        await pay(studio.harness.description, { network: "base", x402Version });
        const again = { operation: "settle" };
        const id = (await list())[0]?.id ?? "";
        if (movedBy > 0) await studio.harness.chains.base?.advanceTime(movedBy);
        await requestJson(`${studio.origin}/payments/${id}/again`, { method: "POST", body: again });
        const before = await detailOf(id);
        expect(before.settle?.outcome).toBe("invalid");
        await runCopied(before, connected);
        expect((await list())[0]?.settle).toMatchObject({
          outcome: "invalid",
          reason: before.settle?.reason,
        });
      }
    },
  );

  test("a refusal says what is wrong and what to do", async () => {
    await post(studio.harness, "verify", await signedRequest(studio.harness, { validBefore: -5 }));
    const [payment] = await list();
    expect(payment?.verify?.outcome).toBe("invalid");
    const { explanations } = await detailOf(payment?.id ?? "");
    expect(explanations).toMatchObject([{ mistake: "expired", at: "authorization.validBefore" }]);
    expect(explanations[0]?.fix).toContain("Sign again");
  });

  test.each([
    ["fickle", {}, "invalid_transaction_state"],
    ["smartWallet", { validBefore: -5 }, "expired"],
  ] as const)(
    "a contract wallet (%s) whose signature held is not said to have signed wrongly",
    async (payer, order, mistake) => {
      await post(studio.harness, "settle", await signedRequest(studio.harness, { payer, ...order }));
      const { explanations } = await detailOf((await list())[0]?.id ?? "");
      expect(explanations.map((one) => one.mistake)).toEqual([mistake]);
    },
  );

  test("an authorization that another sender used straight on the token is told with when, where and by whom", async () => {
    const body = await signedRequest(studio.harness);
    const { authorization, signature } = body.paymentPayload.payload;
    const { address: token } = networks.base.usdc;
    await sendFrom(studio.harness, strangerAddress, token, encodeSubmission(authorization, signature));
    await post(studio.harness, "verify", body);
    const [explanation] = (await detailOf((await list())[0]?.id ?? "")).explanations;
    expect(explanation).toMatchObject({
      mistake: "invalid_transaction_state",
      title: "The authorization was used before",
      at: "authorization.nonce",
    });
    const told = new RegExp(
      `^used at 20\\S+Z in transaction 0x[0-9a-f]{64} of block \\d+, sent by ${strangerAddress} to the contract ${token}, which moved 0.01 USDC to 0x`,
      "i",
    );
    expect(explanation?.got).toMatch(told);
    // The answer itself says no more than before: the chain was searched for who looks.
    expect((await list())[0]?.verify?.message).not.toContain(strangerAddress);
  });

  test("an authorization that its payer cancelled is told so", async () => {
    const body = await signedRequest(studio.harness);
    const { nonce } = body.paymentPayload.payload.authorization;
    const { funded } = testPayers;
    const asset = networks.base.usdc;
    const data = await encodeCancellation(funded.privateKey, { asset, chainId: 8453 }, nonce);
    await sendFrom(studio.harness, strangerAddress, asset.address, data);
    await post(studio.harness, "settle", body);
    const [explanation] = (await detailOf((await list())[0]?.id ?? "")).explanations;
    expect(explanation).toMatchObject({
      title: "The authorization was cancelled",
      got: expect.stringMatching(/^cancelled at .* in transaction 0x[0-9a-f]{64} of block \d+, sent by 0x/),
    });
  });

  test("a request that is no payment is listed too", async () => {
    await post(studio.harness, "verify", { paymentPayload: 7 });
    const [payment] = await list();
    expect(payment).toMatchObject({ payer: null, verify: { outcome: "invalid", reason: "invalid_payload" } });
    expect(payment?.id).toMatch(/^request-/);
  });

  /** Sends bytes to verify, and ends the connection unanswered where that is asked for. */
  async function sendRaw(headers: Record<string, string>, body: string, cut = false): Promise<void> {
    const { apiKey } = studio.harness.description.organization;
    const request = httpRequest(`${studio.origin}/v1/verify`, {
      method: "POST",
      headers: { authorization: apiKey, ...headers },
    });
    request.on("error", () => {});
    if (cut) {
      request.write(body);
      await expect.poll(() => request.writableLength).toBe(0);
      setTimeout(() => request.destroy(), 100);
      await new Promise((resolve) => request.on("close", resolve));
      return;
    }
    request.end(body);
    const [response]: IncomingMessage[] = await once(request, "response");
    response?.resume();
    await once(response ?? request, "close");
  }
  const newest = async () => {
    await expect.poll(async () => (await list()).length).toBe(1);
    return detailOf((await list())[0]?.id ?? "");
  };
  const json = { "content-type": "application/json" };
  const big = JSON.stringify({ paymentPayload: "x".repeat(bodyLimit) });

  test.each([
    {
      what: "that is no JSON",
      ...{ headers: json, body: '{\n  "paymentPayload": {,}\n}' },
      explanation: { at: "line 2, column 22", got: '"," where a key in double quotes or "}" is expected' },
      received: { text: '{\n  "paymentPayload": {,}\n}', bytes: 27, isWhole: true, problem: { offset: 23 } },
    },
    {
      what: "of a wrong content type",
      ...{ headers: { "content-type": "text/plain" }, body: '{"paymentPayload":{}}' },
      explanation: { at: "content-type", got: "text/plain", expected: "application/json" },
      received: { text: '{"paymentPayload":{}}', isWhole: true, contentType: "text/plain", problem: null },
    },
    {
      what: "that is too large by its length",
      ...{ headers: { ...json, "content-length": `${big.length}` }, body: big },
      explanation: { expected: `at most ${bodyLimit} bytes` },
      received: { text: expect.stringMatching(/^.{4096}$/), isWhole: false, problem: null },
    },
    {
      what: "that is too large in chunks",
      ...{ headers: { ...json, "transfer-encoding": "chunked" }, body: big },
      explanation: { expected: `at most ${bodyLimit} bytes` },
      received: { text: expect.stringMatching(/^.{4096}$/), isWhole: false },
    },
    {
      what: "that is cut off",
      ...{
        headers: { ...json, "content-length": "400" },
        body: '{"paymentPayload": {"x402Version": 1',
        cut: true,
      },
      explanation: {
        title: "The body was cut off: the connection ended after 36 of 400 bytes",
        fix: expect.stringContaining("content-length"),
      },
      received: { text: '{"paymentPayload": {"x402Version": 1', bytes: 36, isWhole: false },
    },
    {
      what: "that is JSON and no payment",
      ...{ headers: json, body: '{"paymentPayload": "eyJ4NDAyVmVyc2lvbiI6MX0="}' },
      explanation: { mistake: "not-decoded", at: "paymentPayload" },
      received: { text: expect.stringContaining('{"paymentPayload": "eyJ4NDAyVmVy'), problem: null },
    },
  ])("a body $what is listed with what came and what is wrong where", async (one) => {
    await sendRaw(one.headers, one.body, "cut" in one);
    const { received, explanations } = await newest();
    expect(received).toMatchObject(one.received);
    expect(explanations[0]).toMatchObject(one.explanation);
  });

  test("a body that cannot be read is told without its secrets", async () => {
    const body = await signedRequest(studio.harness);
    const { signature } = body.paymentPayload.payload;
    const { privateKey } = testPayers.funded;
    const { apiKey } = studio.harness.description.organization;
    await sendRaw(json, JSON.stringify({ body, privateKey, apiKey }).slice(0, -1));
    const told = JSON.stringify(await newest());
    expect(told).toContain(body.paymentPayload.payload.authorization.from);
    for (const secret of [signature.slice(12), privateKey.slice(10), apiKey.split("_").at(-1)]) {
      expect(told).not.toContain(secret);
    }
  });

  test("no signature, key or secret is told", async () => {
    const body = await signedRequest(studio.harness);
    await post(studio.harness, "verify", body);
    const [payment] = await list();
    const told = JSON.stringify([payment, await detailOf(payment?.id ?? "")]);
    expect(told).not.toContain(body.paymentPayload.payload.signature.slice(2, 66));
    expect(told).not.toContain(studio.harness.description.organization.apiKey);
  });

  test("a payment is sent again, and written as a command that works when pasted", async () => {
    await payAs("funded");
    const [payment] = await list();
    const postTo = (what: string, headers: Record<string, string> = {}) =>
      fetch(`${studio.origin}/payments/${payment?.id}/${what}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: '{"operation":"verify"}',
      });
    const again = (await (await postTo("again")).json()) as { status: number; body: unknown };
    expect(again).toMatchObject({ status: 200, body: { isValid: false, paymentState: "taken" } });
    const { explanations } = await detailOf(payment?.id ?? "");
    expect(explanations).toMatchObject([
      {
        title: "The authorization was used before",
        got: expect.stringMatching(
          new RegExp(`^settled at 20.*Z in transaction ${payment?.transaction} for org_local$`),
        ),
      },
    ]);
    const { curl } = (await (await postTo("curl")).json()) as { curl: string };
    const { stdout } = await promisify(execFile)("sh", ["-c", curl]);
    expect(JSON.parse(stdout)).toMatchObject({ isValid: false, invalidReason: "invalid_transaction_state" });
    expect((await list())[0]?.verify?.count).toBe(3);
    // A page of another site must neither pay nor read a signature.
    for (const what of ["again", "curl"]) {
      expect((await postTo(what, { origin: "https://evil.example" })).status).toBe(403);
    }
    expect((await fetch(`${studio.origin}/payments/0x12/again`, { method: "POST" })).status).toBe(404);
  });

  test("the page and its files have 60 kB at most, as they are sent compressed", async () => {
    const html = await (await fetch(`${studio.origin}/studio`)).text();
    const names = [...html.matchAll(/(?:src|href)="(\/studio\/[^"]+)"/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(1);
    const files = await Promise.all(
      names.map(async (name) => Buffer.from(await (await fetch(`${studio.origin}${name}`)).arrayBuffer())),
    );
    const sizes = [Buffer.from(html), ...files].map((file) => gzipSync(file).length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(60_000);
  });

  test("requests without a route, without a key and without a readable body are listed, with what to do", async () => {
    await fetch(`${studio.origin}/v2/verify?x=1`, { method: "POST" });
    const verify = (headers: Record<string, string>, body: string) =>
      fetch(`${studio.origin}/v1/verify`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
      });
    await verify({}, "{}");
    await verify({ authorization: studio.harness.description.organization.apiKey }, "{");
    const newest = async () =>
      paymentListSchema.parse(await (await fetch(`${studio.origin}/payments?limit=3`)).json()).payments;
    await expect
      .poll(async () =>
        (await newest()).map(({ verify: view, unrouted }) => view?.status ?? unrouted?.status),
      )
      .toEqual([400, 401, 404]);
    const [unreadable, keyless, lost] = await newest();
    expect(lost).toMatchObject({ unrouted: { method: "POST", path: "/v2/verify" }, network: null });
    for (const [request, fix] of [
      [unreadable, "one JSON object"],
      [keyless, "API key"],
      [lost, "ends in /v1"],
    ] as const) {
      const { payment } = paymentAnswerSchema.parse(
        await (await fetch(`${studio.origin}/payments/${request?.id}`)).json(),
      );
      expect(payment.explanations[0]?.fix).toContain(fix);
    }
  });

  test("what was never seen is 404, and the page has a policy of its own", async () => {
    expect((await fetch(`${studio.origin}/payments/0x12`)).status).toBe(404);
    expect((await fetch(`${studio.origin}/studio/..%2fpackage.json`)).status).toBe(404);
    const page = await fetch(`${studio.origin}/`);
    expect(page.url).toBe(`${studio.origin}/studio`);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  });
});

test("the OpenAPI document describes what the studio is fed by, and the answers are as it says", async () => {
  const document = await get<{ paths: object; components: { schemas: object } }>("/openapi.json");
  expect(Object.keys(document.paths)).toEqual(
    expect.arrayContaining(["/payments", "/payments/{id}", "/events", "/v1/verify"]),
  );
  expect(Object.keys(document.components.schemas)).toContain("PaymentSummary");
  await payAs("empty");
  const [payment] = await list();
  expect(paymentListSchema.parse(await get("/payments")).payments).toHaveLength(1);
  paymentAnswerSchema.parse(await get(`/payments/${payment?.id}`));
});

test("the example of the OpenAPI document works as it stands, each time it is read", async () => {
  for (let read = 0; read < 2; read++) {
    const document = await get<Body>("/openapi.json");
    const { requestBody } = document.paths["/v1/settle"].post;
    const settle = await requestJson(`${studio.origin}/v1/settle`, {
      method: "POST",
      headers: { authorization: document.components.securitySchemes.apiKey["x-scalar-secret-token"] },
      body: requestBody.content["application/json"].example,
    });
    expect(settle.body).toMatchObject({ success: true });
  }
});

test("the mock has the studio too: what was asked of it, and how it ended", async () => {
  await using mock = await startMockServer();
  const at = mock.url.replace(/\/v1$/, "");
  const { request } = await findScenario("settle.insufficient_funds").plan(mock.environment);
  mock.scenario("settle.unavailable");
  const send = () =>
    fetch(`${at}${request.path}`, {
      method: "POST",
      headers: request.headers,
      body: request.body ?? null,
    });
  await send();
  await send();
  const { payments } = paymentListSchema.parse(await (await fetch(`${at}/payments`)).json());
  expect(payments).toMatchObject([
    { payerName: "empty", settle: { outcome: "invalid", reason: "insufficient_funds", count: 2 } },
  ]);
  const { payment } = paymentAnswerSchema.parse(
    await (await fetch(`${at}/payments/${payments[0]?.id}`)).json(),
  );
  expect(payment.timeline.map(({ title }) => title)).toContain("settle: undetermined");
  const [answer] = payment.answers;
  expect([answer?.status, answer?.body]).toEqual([200, expect.stringContaining("insufficient_funds")]);
  expect((await fetch(`${at}/studio`)).status).toBe(200);
  expect((await fetch(`${at}/payments`, { headers: { origin: "https://evil.example" } })).status).toBe(403);
  mock.reset();
  expect(paymentListSchema.parse(await (await fetch(`${at}/payments`)).json()).payments).toEqual([]);
});

describe("the stream of events", () => {
  test("a reader that comes back gets what it missed, once", async () => {
    const first = await readEvents({});
    await payAs("funded");
    const seen = await first.until((events) => events.some(({ data }) => data.includes('"settled"')));
    first.end();
    const lastId = seen.findLast(({ id }) => id !== undefined)?.id ?? "";
    await payAs("empty");
    const second = await readEvents({ "last-event-id": lastId });
    const missed = await second.until((events) => events.some(({ data }) => data.includes('"empty"')));
    second.end();
    expect(missed.filter(({ event }) => event === "reset")).toEqual([]);
    expect(
      missed.some(({ data }) => data.includes('"payerName":"funded","amount"') && !data.includes("deliver")),
    ).toBe(false);
  });

  test("one whose knowledge is of before a reset begins anew", async () => {
    await payAs("funded");
    const first = await readEvents({});
    const [, payment] = await first.until((events) => events.length >= 2);
    first.end();
    await studio.harness.reset();
    const second = await readEvents({ "last-event-id": payment?.id ?? "" });
    const [event] = await second.until((events) => events.length >= 1);
    second.end();
    expect(event?.event).toBe("reset");
  });
});

type ServerEvent = { id: string | undefined; event: string | undefined; data: string };

/** Reads the stream of events. */
async function readEvents(headers: Record<string, string>) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const outgoing = httpRequest(`${studio.origin}/events`, { headers }, resolve);
  outgoing.on("error", reject);
  outgoing.end();
  const response = await promise;
  response.on("error", () => {});
  let text = "";
  response.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const events = (): ServerEvent[] =>
    text
      .split("\n\n")
      .slice(0, -1)
      .map((block) => {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
        return { id: field("id"), event: field("event"), data: field("data") ?? "" };
      });
  return {
    end: () => outgoing.destroy(),
    async until(enough: (events: readonly ServerEvent[]) => boolean): Promise<ServerEvent[]> {
      await expect.poll(() => enough(events()), { message: "the events come" }).toBe(true);
      return events();
    },
  };
}
