import { expect, onTestFinished, test, vi } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { channels } from "../channels/channels.ts";
import { createPaymentLog } from "./payment-log.ts";
import { createPaymentStore } from "./payment-store.ts";

const serviceId = "the service";
const contract = "0x00000000000000000000000000000000000000F0";

let time = 1_000;
const tick = () => time++;

function startLog(bounds = { payments: 100, messages: 1_000, messagesEach: 50 }) {
  time = 1_000;
  const store = createPaymentStore(serviceId, bounds, tick);
  onTestFinished(() => store.close());
  return { store, log: createPaymentLog(store) };
}

function payment(index: number): PaymentRequest {
  const nonce: Hex = `0x${index.toString(16).padStart(64, "0")}`;
  return examplePayment({ payTo: contract, resource: "", nonce });
}

let requests = 0;

/** Publishes what a service does for a verify; without `end` it is left under way. */
function verify(request: PaymentRequest, { from = serviceId, end = true } = {}): string {
  const requestId = `request ${requests++}`;
  const { settlementId } = request;
  const about = { serviceId: from, requestId, operation: "verify", settlementId, payment: request } as const;
  channels.request.publish(() => about);
  channels.checks.publish(() => ({
    ...{ serviceId: from, settlementId, payment: request },
    checks: [[{ check: "signatureHolds", refusal: undefined }]],
    times: [tick()],
  }));
  if (end)
    channels.payment.publish(() => ({ ...about, status: 200, result: { outcome: "valid" }, tookMs: 3 }));
  return requestId;
}

/** Publishes an HTTP request that asks for each of these payments or transactions, and for nothing in particular. */
function askNode(...subjects: readonly Hex[]): void {
  channels.rpc.publish(() => ({
    ...{ serviceId, network: "base", endpoint: "1", purpose: "read", durationMs: 2, error: undefined },
    methods: [...subjects.map(() => "eth_call"), "eth_getBalance"],
    about: new Map(subjects.map((subject) => [subject, ["eth_call"]])),
  }));
}

test("a payment that cannot be summed up hides no other, and is told of", () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  onTestFinished(() => warn.mockRestore());
  const { store } = startLog();
  const [broken, good] = [payment(1), payment(2)];
  verify(broken);
  verify(good);
  function* payments() {
    for (const each of store.payments()) {
      yield each.id === broken.settlementId ? { ...each, published: 1, after: () => JSON.parse("{") } : each;
    }
  }
  const log = createPaymentLog({ ...store, payments });
  expect(log.list().map(({ id }) => id)).toEqual([good.settlementId]);
  expect(warn).toHaveBeenCalledOnce();
});

test("a payment that was not watched is shown whole to later readers", () => {
  const { log } = startLog();
  const one = payment(1);
  const requestId = verify(one);
  expect(log.list()).toMatchObject([
    {
      id: one.settlementId,
      payerName: "funded",
      amount: "10000",
      verify: { outcome: "valid", status: 200, tookMs: 3, count: 1 },
      firstSeenAt: 1_000,
      lastSeenAt: 1_002,
    },
  ]);
  expect(log.find(one.settlementId)?.timeline).toMatchObject([
    { at: 1_000, kind: "request", title: "POST /v1/verify", requestId },
    { at: 1_001, kind: "check", title: "signatureHolds", ok: true, requestId },
    { at: 1_002, kind: "answer", title: "verify: valid", ok: true, requestId, tookMs: 3 },
  ]);
});

test("what another service of the process does is not told", () => {
  const { log } = startLog();
  verify(payment(1), { from: "another service" });
  expect(log.list()).toEqual([]);
});

test("readers get what changed since they last read, and only that", () => {
  const { log } = startLog();
  const [first, second] = [payment(1), payment(2)];
  verify(first);
  verify(second);
  const [, newest] = log.changedSince(0);
  expect(newest?.id).toBe(second.settlementId);
  const version = newest?.version ?? 0;
  expect(log.changedSince(version)).toEqual([]);
  verify(first);
  expect(log.changedSince(version)).toMatchObject([{ id: first.settlementId, verify: { count: 2 } }]);
});

test("those who watch hear of many changes once", async () => {
  const { log } = startLog();
  let heard = 0;
  const changed = Promise.withResolvers<void>();
  const end = log.onChange(() => {
    heard++;
    changed.resolve();
  });
  onTestFinished(end);
  for (let index = 0; index < 10; index++) verify(payment(index));
  await changed.promise;
  expect(heard).toBe(1);
});

function sign(transaction: Hex, settlementIds: readonly Hex[]): void {
  channels.transaction.publish(() => ({
    ...{ serviceId, network: "base", transaction, step: "signed", kind: "settle", txNonce: 1 },
    ...{ operator: contract, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, settlementIds },
  }));
}

test("of calls to a node that many payments share, each has its own", () => {
  const { log } = startLog();
  const all = Array.from({ length: 20 }, (_, index) => payment(index));
  const callsOf = ({ settlementId }: PaymentRequest) =>
    log.find(settlementId)?.timeline.filter(({ kind }) => kind === "rpc");
  const requestIds = all.map((one) => verify(one, { end: false }));
  const [silent, ...asking] = all;
  askNode(...asking.map(({ settlementId }) => settlementId));
  askNode();
  for (const [index, one] of asking.entries()) {
    expect(callsOf(one)).toMatchObject([{ title: "eth_call", tookMs: 2, requestId: requestIds[index + 1] }]);
  }
  expect(silent && callsOf(silent)).toEqual([]);
});

test("calls about a transaction are told of the payments that it carries", () => {
  const { log } = startLog();
  const [one, other] = [payment(1), payment(2)];
  verify(one);
  verify(other);
  const transaction: Hex = `0x${"dd".repeat(32)}`;
  sign(transaction, [one.settlementId]);
  askNode(transaction);
  const kindsOf = ({ settlementId }: PaymentRequest) =>
    log.find(settlementId)?.timeline.map(({ kind }) => kind);
  expect(kindsOf(one)?.slice(-2)).toEqual(["transaction", "rpc"]);
  expect(kindsOf(other)).not.toContain("rpc");
});

test("a transaction that replaces another is told of its payments, which are found by either", () => {
  const { log } = startLog();
  const one = payment(1);
  verify(one);
  const [first, second]: [Hex, Hex] = [`0x${"dd".repeat(32)}`, `0x${"ee".repeat(32)}`];
  sign(first, [one.settlementId]);
  // Signed again at the same txNonce, with a higher fee.
  sign(second, []);
  askNode(second);
  const told = log.find(one.settlementId)?.timeline.slice(-3);
  expect(told?.map(({ kind, details }) => details.transaction ?? kind)).toEqual([first, second, "rpc"]);
  for (const hash of [first, second]) expect(log.find(hash)?.summary.id).toBe(one.settlementId);
});

/** Publishes that a fault hit some of the calls of an HTTP request. */
function hit(calls: readonly { params: readonly unknown[]; isHit: boolean }[]): void {
  channels.fault.publish(() => ({
    ...{ serviceId, network: "base", faultId: "1", kind: "error", methods: ["eth_call"], calls },
  }));
}

test("a fault is told of the payments whose calls it hit, where it hit, and of no other under way", () => {
  const { log } = startLog();
  const [one, other, third] = [payment(1), payment(2), payment(3)];
  for (const each of [one, other, third]) verify(each, { end: false });
  const simulation = ({ payment: { nonce } }: PaymentRequest, isHit: boolean) => ({
    params: [{ data: `0xabcd${nonce.slice(2).toUpperCase()}` }],
    isHit,
  });
  const head = (isHit: boolean) => ({ params: ["latest", false], isHit });
  const balance = { params: [{ data: `0x70a0${"0".repeat(24)}${contract.slice(2)}` }], isHit: true };
  const kindsOf = ({ settlementId }: PaymentRequest) =>
    log.find(settlementId)?.timeline.flatMap(({ kind }) => (kind === "fault" ? [kind] : []));

  hit([head(false), simulation(one, true), simulation(other, false)]);
  expect([one, other, third].map(kindsOf)).toEqual([["fault"], [], []]);
  // The newest block counts for all that ask for it together.
  hit([head(true), simulation(one, false), simulation(other, false)]);
  expect([one, other, third].map(kindsOf)).toEqual([["fault", "fault"], ["fault"], []]);
  // Another's balance, and what is asked for no payment.
  hit([balance]);
  expect([one, other, third].map(kindsOf)).toEqual([["fault", "fault"], ["fault"], []]);

  const transaction: Hex = `0x${"dd".repeat(32)}`;
  sign(transaction, [third.settlementId]);
  hit([{ params: [transaction], isHit: true }]);
  expect(log.find(third.settlementId)?.timeline.slice(-2)).toMatchObject([
    { kind: "transaction" },
    { kind: "fault", ok: false, details: { methods: "eth_call" } },
  ]);
  expect(JSON.stringify(log.find(one.settlementId)?.timeline)).not.toContain("02".repeat(32));
});

test("a fault of a chain that hit no transaction is told of no payment under way", () => {
  const { log } = startLog();
  const one = payment(1);
  verify(one, { end: false });
  hit([]);
  expect(log.find(one.settlementId)?.timeline.some(({ kind }) => kind === "fault")).toBe(false);
});

test("the oldest payments are forgotten first", () => {
  const { log, store } = startLog({ payments: 100, messages: 1_000, messagesEach: 50 });
  const all = Array.from({ length: 250 }, (_, index) => payment(index));
  verify(all[0] ?? payment(0));
  log.list();
  for (const each of all) {
    verify(each);
    verify(all[0] ?? payment(0));
  }
  const ids = log.list().map(({ id }) => id);
  expect(ids.length).toBeGreaterThan(90);
  expect(ids.length).toBeLessThanOrEqual(100);
  expect(ids).toContain(all[0]?.settlementId);
  expect(ids).toContain(all.at(-1)?.settlementId);
  expect(ids).not.toContain(all[1]?.settlementId);
  expect([...store.payments()]).toHaveLength(ids.length);
});

test("a payment that is asked for very often is known as it is now, with its newest messages", () => {
  const { log, store } = startLog({ payments: 100, messages: 200, messagesEach: 30 });
  const one = payment(1);
  for (let index = 0; index < 60; index++) verify(one);
  const requestId = verify(one, { end: false });
  const { summary, timeline, omitted } = log.find(one.settlementId) ?? {};
  expect(summary?.verify?.outcome).toBe("open");
  expect(timeline?.at(-1)).toMatchObject({ kind: "check", requestId });
  expect((omitted ?? 0) + (timeline?.length ?? 0)).toBe(182);
  for (let index = 2; index < 90; index++) verify(payment(index));
  const kept = [...store.payments()].reduce((sum, { messages }) => sum + messages.length, 0);
  expect(kept).toBeLessThanOrEqual(200);
});

test("after everything was forgotten, what was known before counts for nothing", () => {
  const { log, store } = startLog();
  verify(payment(1));
  const before = { era: log.era(), version: log.list()[0]?.version };
  store.clear();
  expect(log.era()).not.toBe(before.era);
  expect(log.list()).toEqual([]);
  verify(payment(1));
  expect(log.list()).toMatchObject([{ version: before.version, verify: { count: 1 } }]);
});

test("requests without a route are listed with what to do, and a flood of them leaves the payments", () => {
  const { log } = startLog();
  const one = payment(1);
  verify(one);
  for (let index = 0; index < 500; index++) {
    channels.unrouted.publish(() => ({
      ...{ serviceId, requestId: `lost ${index}`, method: "POST", path: "/v2/verify", status: 404 },
      message: "There is no route POST /v2/verify",
    }));
  }
  const listed = log.list();
  expect(listed.length).toBeLessThanOrEqual(51);
  expect(listed.map(({ id }) => id)).toContain(one.settlementId);
  expect(listed[0]).toMatchObject({
    id: "request-lost 499",
    unrouted: { method: "POST", path: "/v2/verify", status: 404 },
  });
  expect(log.find("request-lost 499")?.timeline).toMatchObject([{ title: "POST /v2/verify", ok: false }]);
});
