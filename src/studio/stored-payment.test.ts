import { expect, test } from "vitest";
import { examplePayment } from "../../test/support/example-payment.ts";
import type {
  CheckMade,
  ChecksBegun,
  RequestEnded,
  RequestRead,
  RpcRequested,
} from "../channels/channels.ts";
import { refusals } from "../protocol/refusals.ts";
import { KeptPayment } from "./stored-payment.ts";

const payment = examplePayment();
const { settlementId } = payment;
const serviceId = "the service";

/** The same object for all requests, as in the service. */
const passed: readonly CheckMade[] = [{ check: "networkIsEnabled", refusal: undefined }];

/** The messages about a verify. Another object of the same payment, as for each request. */
function verify(requestId: string, result: RequestEnded["result"] = { outcome: "valid" }) {
  const about = { serviceId, requestId, operation: "verify", settlementId, payment: { ...payment } } as const;
  const checks: (readonly CheckMade[])[] = [
    passed,
    result.outcome === "valid" ? passed : [{ check: "windowIsOpen", refusal: refusals.usedHere() }],
  ];
  return {
    read: about satisfies RequestRead,
    checked: { ...about, checks, times: [2.5, 3] } satisfies ChecksBegun,
    asked: {
      ...{ serviceId, network: "base", endpoint: "2", purpose: "read", methods: ["eth_call", "eth_call"] },
      ...{ about: new Map([[settlementId, ["eth_call"]]]), durationMs: 0.5, error: "timeout" },
    } satisfies RpcRequested,
    ended: { ...about, status: 200, result, tookMs: 1.25 } satisfies RequestEnded,
  };
}

type Verify = ReturnType<typeof verify>;

function store(kept: KeptPayment, { read, checked, asked, ended }: Verify, from = 0): void {
  const { endpoint, durationMs, error } = asked;
  kept.open(read, from + 2);
  kept.check(checked, from + 2.5);
  kept.call(asked, [{ endpoint, methods: ["eth_call"], durationMs, error, at: from + 4 }]);
  kept.end(ended, from + 5);
}

/** What readers get of a verify. */
function told({ read, checked, asked, ended }: Verify): object[] {
  const { requestId, operation } = read;
  const { endpoint, about, durationMs, error } = asked;
  return [
    { requestId, operation },
    { requestId, checks: checked.checks, times: checked.times },
    { endpoint, about, durationMs, error },
    { requestId, operation, status: 200, result: ended.result, tookMs: 1.25 },
  ];
}

test.each<[string, RequestEnded["result"]]>([
  ["that was valid", { outcome: "valid" }],
  ["that was refused", { outcome: "invalid", reason: "invalid_transaction_state", message: "It was used" }],
])("a verify %s is told as it was published, with its times", (_, result) => {
  const kept = new KeptPayment(settlementId, payment);
  const one = verify("1", result);
  store(kept, one);
  expect(kept.after(0)).toEqual({ messages: told(one), times: [2, 2.5, 4, 5] });
  expect(kept.request).toEqual(payment);
});

test("a verify under way is told as far as it has come, and the rest to readers who know that", () => {
  const kept = new KeptPayment(settlementId, payment);
  const one = verify("1");
  kept.open(one.read, 2);
  kept.check(one.checked, 2.5);
  expect(kept.messages).toEqual(told(one).slice(0, 2));
  kept.end(one.ended, 5);
  expect(kept.after(2)).toEqual({ messages: told(one).slice(3), times: [5] });
});

test("of verifies one after the other, the first are forgotten first, and readers get those after what they know", () => {
  const kept = new KeptPayment(settlementId, payment);
  const all = Array.from({ length: 5 }, (_, index) => verify(`${index}`));
  for (const [index, one] of all.entries()) store(kept, one, 10 * index);
  expect(kept.messages).toEqual(all.flatMap(told));
  expect(kept.after(10).messages).toEqual(all.flatMap(told).slice(10));
  expect(kept.forget(6)).toBe(8);
  expect([kept.omitted, kept.kept, kept.published]).toEqual([8, 12, 20]);
  expect(kept.messages).toEqual(all.slice(2).flatMap(told));
  expect(kept.after(18).messages).toEqual(all.flatMap(told).slice(18));
});

test("verifies at the same time are told in the order of what was published, each with its checks", () => {
  const kept = new KeptPayment(settlementId, payment);
  const [one, other] = [verify("1"), verify("2")];
  kept.open(one.read, 1);
  kept.check(one.checked, 2);
  kept.open(other.read, 3);
  kept.check(other.checked, 4);
  kept.end(other.ended, 5);
  kept.end(one.ended, 6);
  const [[asked, checks, , answer], [laterAsked, laterChecks, , laterAnswer]] = [told(one), told(other)];
  expect(kept.messages).toEqual([asked, checks, laterAsked, laterChecks, laterAnswer, answer]);
  expect(kept.times).toEqual([1, 2.5, 3, 4, 5, 6]);
});

test("a list of checks that grows after its request has ended changes no other request", () => {
  const kept = new KeptPayment(settlementId, payment);
  const [one, other] = [verify("1"), verify("2")];
  for (const { checked } of [one, other]) checked.checks.push(passed);
  store(kept, one);
  store(kept, other, 10);
  one.checked.checks.push(passed);
  expect(kept.messages[5]).toMatchObject({ requestId: "2", checks: other.checked.checks });
});

test("checks that are made after the caller has left are told, too", () => {
  const kept = new KeptPayment(settlementId, payment);
  const { read, checked, ended } = verify("1");
  kept.open(read, 1);
  kept.check(checked, 2);
  kept.end({ ...ended, status: undefined, result: { outcome: "abandoned" } }, 5);
  checked.checks.push([{ check: "simulationSucceeds", refusal: undefined }]);
  expect(kept.messages[1]).toMatchObject({ checks: [[{}], [{}], [{ check: "simulationSucceeds" }]] });
});
