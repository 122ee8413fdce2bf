import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { exampleBody, examplePayment, parseBody } from "../../../test/support/example-payment.ts";
import { publish } from "../../../test/support/publish.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { PaymentOutcome } from "../channels/channels.ts";
import { chainTimeOf, newestJudged } from "./record.ts";
import { linesOf, newestSummaries, summariesOf } from "./summary.ts";
import { createTimeline, type TimelineOptions } from "./timeline.ts";

const serviceId = "the service";
const contract = "0x00000000000000000000000000000000000000F0";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A millisecond passes. */
const tick = () => vi.setSystemTime(Date.now() + 1);

const small = { payments: 100, bytes: 1_000_000, entries: 50 };

function start(options: TimelineOptions = { bounds: small }) {
  const timeline = createTimeline(serviceId, options);
  onTestFinished(() => timeline.close());
  return {
    timeline,
    list: () => newestSummaries(timeline, {}),
    linesOf(id: string) {
      const record = timeline.find(id);
      return record === undefined ? [] : linesOf(record).timeline;
    },
  };
}

function payment(index: number): PaymentRequest {
  const nonce: Hex = `0x${index.toString(16).padStart(64, "0")}`;
  return examplePayment({ payTo: contract, resource: "", nonce });
}

let requests = 0;

/** Publishes what a service does for a verify; without `end` it is left under way. */
function verify(request: PaymentRequest, { from = serviceId, end = true, body = "" } = {}): string {
  const requestId = `request ${requests++}`;
  const { settlementId } = request;
  const about = { serviceId: from, requestId, operation: "verify", settlementId, payment: request } as const;
  publish("request", { ...about, body });
  tick();
  check(request, from);
  tick();
  if (end) {
    answer(request, requestId, "valid", from);
    tick();
  }
  return requestId;
}

function check(request: PaymentRequest, from = serviceId): void {
  publish("checks", {
    ...{ serviceId: from, settlementId: request.settlementId, payment: request },
    checks: [{ check: "signatureHolds", refusal: undefined }],
  });
}

function answer(
  request: PaymentRequest,
  requestId: string,
  outcome: PaymentOutcome = "valid",
  from = serviceId,
): void {
  publish("answer", {
    ...{ serviceId: from, requestId, operation: "verify", payment: request },
    ...{ settlementId: request.settlementId, status: 200, result: { outcome }, tookMs: 3 },
  });
}

/** Publishes an HTTP request that asks for each of these payments or transactions, and for nothing in particular. */
function askNode(...subjects: readonly Hex[]): void {
  publish("rpc", {
    ...{ serviceId, network: "base", endpoint: "1", purpose: "read", durationMs: 2, error: undefined },
    methods: [...subjects.map(() => "eth_call"), "eth_getBalance"],
    about: new Map(subjects.map((subject) => [subject, ["eth_call"]])),
  });
}

test("a payment that cannot be summed up hides no other, and is a warning", () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  onTestFinished(() => warn.mockRestore());
  const { timeline } = start();
  const [broken, good] = [payment(1), payment(2)];
  verify(broken);
  verify(good);
  const records = [...timeline.records()].map((record) => ({
    ...record,
    get entries() {
      return record.id === broken.settlementId ? JSON.parse("{") : record.entries;
    },
  }));
  expect(summariesOf(records).map(({ id }) => id)).toEqual([good.settlementId]);
  expect(warn).toHaveBeenCalledOnce();
});

test("a payment is shown whole to those who look later", () => {
  const { list, linesOf } = start();
  const one = payment(1);
  const requestId = verify(one);
  expect(list()).toMatchObject([
    {
      id: one.settlementId,
      payerName: "funded",
      amount: "10000",
      verify: { outcome: "valid", status: 200, tookMs: 3, count: 1 },
      firstSeenAt: 1_000,
      lastSeenAt: 1_002,
    },
  ]);
  expect(linesOf(one.settlementId)).toMatchObject([
    { at: 1_000, kind: "request", title: "POST /v1/verify", requestId },
    { at: 1_001, kind: "check", title: "signatureHolds", ok: true, requestId },
    { at: 1_002, kind: "answer", title: "verify: valid", ok: true, requestId, tookMs: 3 },
  ]);
});

test("what another service of the process does is not kept", () => {
  const { list } = start();
  verify(payment(1), { from: "another service" });
  expect(list()).toEqual([]);
});

test("the version of a record grows with its changes, and with no other's", () => {
  const { timeline } = start();
  const [first, second] = [payment(1), payment(2)];
  verify(first);
  verify(second);
  const versionOf = ({ settlementId }: PaymentRequest) => timeline.find(settlementId)?.version ?? 0;
  expect(versionOf(second)).toBe(timeline.version());
  const before = versionOf(first);
  verify(second);
  expect(versionOf(first)).toBe(before);
  verify(first);
  expect(versionOf(first)).toBe(timeline.version());
  expect(summariesOf(timeline.records())).toMatchObject([{ verify: { count: 2 } }, { verify: { count: 2 } }]);
});

test("those who watch hear of many changes once", async () => {
  const { timeline } = start();
  let heard = 0;
  const changed = Promise.withResolvers<void>();
  const end = timeline.onChange(() => {
    heard++;
    changed.resolve();
  });
  onTestFinished(end);
  for (let index = 0; index < 10; index++) verify(payment(index));
  await changed.promise;
  expect(heard).toBe(1);
});

function sign(transaction: Hex, settlementIds: readonly Hex[]): void {
  publish("transaction", {
    ...{ serviceId, network: "base", transaction, step: "signed", purpose: "settle", txNonce: 1 },
    ...{ operator: contract, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, settlementIds },
  });
}

test("of calls to a node that many payments share, each has its own", () => {
  const { linesOf } = start();
  const all = Array.from({ length: 20 }, (_, index) => payment(index));
  const callsOf = ({ settlementId }: PaymentRequest) =>
    linesOf(settlementId).filter(({ kind }) => kind === "rpc");
  const requestIds = all.map((one) => verify(one, { end: false }));
  const [silent, ...asking] = all;
  askNode(...asking.map(({ settlementId }) => settlementId));
  askNode();
  for (const [index, one] of asking.entries()) {
    expect(callsOf(one)).toMatchObject([{ title: "eth_call", tookMs: 2, requestId: requestIds[index + 1] }]);
  }
  expect(silent && callsOf(silent)).toEqual([]);
});

test("calls about a transaction stand in the payments that it carries", () => {
  const { linesOf } = start();
  const [one, other] = [payment(1), payment(2)];
  verify(one);
  verify(other);
  const transaction: Hex = `0x${"dd".repeat(32)}`;
  sign(transaction, [one.settlementId]);
  askNode(transaction);
  const kindsOf = ({ settlementId }: PaymentRequest) => linesOf(settlementId).map(({ kind }) => kind);
  expect(kindsOf(one).slice(-2)).toEqual(["transaction", "rpc"]);
  expect(kindsOf(other)).not.toContain("rpc");
});

test("a transaction that replaces another stands in its payments, which are found by either", () => {
  const { timeline, linesOf } = start();
  const one = payment(1);
  verify(one);
  const [first, second]: [Hex, Hex] = [`0x${"dd".repeat(32)}`, `0x${"ee".repeat(32)}`];
  sign(first, [one.settlementId]);
  // Signed again at the same txNonce, with a higher fee.
  sign(second, []);
  askNode(second);
  const newest = linesOf(one.settlementId).slice(-3);
  expect(newest.map(({ kind, details }) => details.transaction ?? kind)).toEqual([first, second, "rpc"]);
  for (const hash of [first, second]) expect(timeline.find(hash)?.id).toBe(one.settlementId);
});

/** Publishes that a fault hit some of the calls of an HTTP request. */
function hit(calls: readonly { params: readonly unknown[]; isHit: boolean }[]): void {
  publish("fault", {
    ...{ serviceId, network: "base", faultId: "1", fault: "error", methods: ["eth_call"], calls },
  });
}

test("a fault stands in the payments whose calls it hit, where it hit, and of no other under way", () => {
  const { linesOf, timeline } = start();
  const [one, other, third] = [payment(1), payment(2), payment(3)];
  for (const each of [one, other, third]) verify(each, { end: false });
  const simulation = ({ payment: { nonce } }: PaymentRequest, isHit: boolean) => ({
    params: [{ data: `0xabcd${nonce.slice(2).toUpperCase()}` }],
    isHit,
  });
  const head = (isHit: boolean) => ({ params: ["latest", false], isHit });
  const balance = { params: [{ data: `0x70a0${"0".repeat(24)}${contract.slice(2)}` }], isHit: true };
  const kindsOf = ({ settlementId }: PaymentRequest) =>
    linesOf(settlementId).flatMap(({ kind }) => (kind === "fault" ? [kind] : []));

  hit([head(false), simulation(one, true), simulation(other, false)]);
  expect([one, other, third].map(kindsOf)).toEqual([["fault"], [], []]);
  // The newest block counts for all that ask for it together.
  hit([head(true), simulation(one, false), simulation(other, false)]);
  expect([one, other, third].map(kindsOf)).toEqual([["fault", "fault"], ["fault"], []]);
  // In a list each kind stands once.
  expect(summariesOf(timeline.records()).map(({ faults }) => faults)).toEqual([["error"], ["error"], []]);
  // Another's balance, and what is asked for no payment.
  hit([balance]);
  expect([one, other, third].map(kindsOf)).toEqual([["fault", "fault"], ["fault"], []]);

  const transaction: Hex = `0x${"dd".repeat(32)}`;
  sign(transaction, [third.settlementId]);
  hit([{ params: [transaction], isHit: true }]);
  expect(linesOf(third.settlementId).slice(-2)).toMatchObject([
    { kind: "transaction" },
    { kind: "fault", ok: false, details: { methods: "eth_call" } },
  ]);
  expect(JSON.stringify(linesOf(one.settlementId))).not.toContain("02".repeat(32));
});

test("a fault of a chain that hit no transaction stands in no payment under way", () => {
  const { linesOf } = start();
  const one = payment(1);
  verify(one, { end: false });
  hit([]);
  expect(linesOf(one.settlementId).some(({ kind }) => kind === "fault")).toBe(false);
});

test("the oldest payments are forgotten first, and none that is asked for meanwhile", () => {
  const { list, timeline } = start();
  const all = Array.from({ length: 250 }, (_, index) => payment(index));
  verify(all[0] ?? payment(0));
  for (const each of all) {
    verify(each);
    verify(all[0] ?? payment(0));
  }
  const ids = list().map(({ id }) => id);
  expect(ids.length).toBeGreaterThan(90);
  expect(ids.length).toBeLessThanOrEqual(100);
  expect(ids).toContain(all[0]?.settlementId);
  expect(ids).toContain(all.at(-1)?.settlementId);
  expect(ids).not.toContain(all[1]?.settlementId);
  expect([...timeline.records()]).toHaveLength(ids.length);
});

test("payments that take much memory are fewer", () => {
  const { list } = start({ bounds: { ...small, bytes: 400_000 } });
  for (let index = 0; index < 90; index++) verify(payment(index), { body: "x".repeat(20_000) });
  expect(list().length).toBeGreaterThan(10);
  expect(list().length).toBeLessThan(20);
});

test("a transaction is forgotten with the last of its payments", () => {
  const { timeline } = start();
  const [one, other] = [payment(1), payment(2)];
  verify(one);
  verify(other);
  const transaction: Hex = `0x${"dd".repeat(32)}`;
  sign(transaction, [one.settlementId, other.settlementId]);
  for (let index = 3; index < 98; index++) verify(payment(index));
  verify(other);
  expect(timeline.find(transaction)?.id).toBe(one.settlementId);
  for (let index = 98; index < 102; index++) verify(payment(index));
  expect(timeline.find(transaction)?.id).toBe(other.settlementId);
  for (let index = 102; index < 202; index++) verify(payment(index));
  expect(timeline.find(transaction)).toBeUndefined();
});

test("a payment that is asked for very often is known as it is now, with its newest entries and what became of it", () => {
  const { timeline, list } = start({ bounds: { ...small, entries: 30 } });
  const one = payment(1);
  const { settlementId } = one;
  verify(one);
  publish("settlement", {
    ...{ serviceId, settlementId, step: "settled", transaction: `0x${"dd".repeat(32)}` },
  });
  for (let index = 0; index < 60; index++) verify(one);
  const requestId = verify(one, { end: false });
  expect(list()).toMatchObject([
    { firstSeenAt: 1_000, verify: { outcome: "open", count: 62 }, ledger: "settled", settledAt: 1_003 },
  ]);
  const record = timeline.find(settlementId);
  const { omitted, timeline: lines } = linesOf(record ?? { entries: [], omitted: 0 });
  expect(lines.at(-1)).toMatchObject({ kind: "check", requestId });
  expect(lines.length).toBeLessThanOrEqual(30);
  expect(omitted + lines.length).toBe(3 * 61 + 1 + 2);
});

test("requests of a payment at the same time have their own checks, also after the caller has left", () => {
  const { linesOf } = start();
  // As in the service, where each request has an object of its own.
  const [one, other] = [payment(1), payment(1)];
  const first = verify(one, { end: false });
  const second = verify(other, { end: false });
  check(one);
  check(other);
  const checks = () => linesOf(one.settlementId).filter(({ kind }) => kind === "check");
  expect(checks().map(({ requestId }) => requestId)).toEqual([first, second, first, second]);
  answer(one, first, "abandoned");
  check(one);
  check(other);
  expect(checks()).toHaveLength(6);
  expect(checks().at(-1)?.requestId).toBe(second);
});

test("of several requests of a payment, what the newest said is kept; a long body is not", () => {
  const { timeline } = start();
  const [first, second] = ["https://shop.example/one", "https://shop.example/two"].map((resource) =>
    exampleBody({ resource }),
  );
  const request = parseBody(first);
  verify(request, { body: JSON.stringify(first) });
  const newest = parseBody(second);
  verify(newest, { body: JSON.stringify(second) });
  const record = () => timeline.find(request.settlementId);
  expect(record()?.request).toBe(newest);
  expect(record()?.body).toBe(JSON.stringify(second));
  verify(newest, { body: "x".repeat(5_000) });
  expect(record()?.body).toBeUndefined();
});

test("after everything was forgotten, what was known before counts for nothing", () => {
  const { timeline, list } = start();
  verify(payment(1));
  const before = { epoch: timeline.epoch(), version: list()[0]?.version };
  timeline.clear();
  expect(timeline.epoch()).not.toBe(before.epoch);
  expect(list()).toEqual([]);
  verify(payment(1));
  expect(list()).toMatchObject([{ version: before.version, verify: { count: 1 } }]);
});

test("requests without a route are listed with what to do, and a flood of them leaves the payments", () => {
  const { list, linesOf } = start();
  const one = payment(1);
  verify(one);
  for (let index = 0; index < 500; index++) {
    tick();
    publish("unrouted", {
      ...{ serviceId, requestId: `lost ${index}`, method: "POST", path: "/v2/verify", status: 404 },
      message: "There is no route POST /v2/verify",
    });
  }
  const listed = list();
  expect(listed.length).toBeLessThanOrEqual(51);
  expect(listed.map(({ id }) => id)).toContain(one.settlementId);
  expect(listed[0]).toMatchObject({
    id: "request-lost 499",
    unrouted: { method: "POST", path: "/v2/verify", status: 404 },
  });
  expect(linesOf("request-lost 499")).toMatchObject([{ title: "POST /v2/verify", ok: false }]);
});

const seeBlock = (number: bigint, timestamp: bigint) =>
  publish("block", { serviceId, network: "base", number, timestamp });

/** Until a chain was asked. */
const lookedUp = () => new Promise((resolve) => setImmediate(resolve));

/** The chain's state when a payment was judged. */
function judgedBy(timeline: ReturnType<typeof createTimeline>, { settlementId }: PaymentRequest) {
  const record = timeline.find(settlementId);
  if (record === undefined) throw new Error("the timeline has no such payment");
  return { time: chainTimeOf(record), block: newestJudged(record).checks?.block?.number };
}

test("a payment was judged by the newest block that the service had seen", () => {
  const { timeline } = start({ readTime: async () => undefined });
  const [first, second] = [payment(1), payment(2)];
  verify(first);
  expect(judgedBy(timeline, first)).toEqual({ time: undefined, block: undefined });
  seeBlock(7n, 5_000n);
  verify(second);
  seeBlock(8n, 5_001n);
  expect(judgedBy(timeline, second)).toEqual({ time: 5_000n, block: 7n });
});

test("of a payment that was refused before the service asked its chain, the time is the chain's all the same", async () => {
  const readTime = vi.fn(async () => 8_600n);
  const { timeline } = start({ readTime });
  seeBlock(7n, 5_000n);
  const one = payment(1);
  verify(one);
  expect(readTime).not.toHaveBeenCalled();
  answer(one, verify(one, { end: false }), "invalid");
  await lookedUp();
  expect(judgedBy(timeline, one)).toEqual({ time: 8_600n, block: 7n });
});

test("however many payments are refused at once, a chain is asked once at a time", async () => {
  const readTime = vi.fn(async () => 5_000n);
  const { timeline } = start({ readTime });
  const all = Array.from({ length: 50 }, (_, index) => payment(index));
  for (const one of all) answer(one, verify(one, { end: false }), "invalid");
  expect(readTime).toHaveBeenCalledTimes(1);
  await lookedUp();
  expect(all.map((one) => judgedBy(timeline, one).time)).toEqual(all.map(() => 5_000n));
});

test("what a chain says after it began anew, or when it has ended, is not taken for its time", async () => {
  const late = Promise.withResolvers<bigint>();
  const readTime = vi.fn(() => late.promise);
  const { timeline } = start({ readTime });
  const one = payment(1);
  answer(one, verify(one, { end: false }), "invalid");
  timeline.clear();
  verify(one);
  late.resolve(8_600n);
  await lookedUp();
  expect(judgedBy(timeline, one).time).toBeUndefined();
  readTime.mockRejectedValueOnce(new Error("the node has ended"));
  answer(one, verify(one, { end: false }), "invalid");
  await lookedUp();
  expect(judgedBy(timeline, one).time).toBeUndefined();
});
