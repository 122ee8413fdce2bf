import { expect, test } from "vitest";
import { exampleBody, examplePayment, parseBody } from "../../../test/support/example-payment.ts";
import { parsePaymentRequest } from "../../methods/methods.ts";
import { createNetworkRegistry, networks } from "../../protocol/networks.ts";
import { refusals } from "../../protocol/refusals.ts";
import type {
  CheckMade,
  ChecksBegun,
  RequestEnded,
  RequestRead,
  RpcRequested,
} from "../channels/channels.ts";
import { KeptTransaction } from "./stored-messages.ts";
import { KeptPayment } from "./stored-payment.ts";

const payment = examplePayment();
const { settlementId } = payment;
const serviceId = "the service";

/** The same object for all requests, as in the service. */
const passed: readonly CheckMade[] = [{ check: "networkIsEnabled", refusal: undefined }];

/** The messages about a verify. Another object of the same payment, as for each request. */
function verify(requestId: string, result: RequestEnded["result"] = { outcome: "valid" }, from = 0) {
  const about = { serviceId, requestId, operation: "verify", settlementId, payment: { ...payment } } as const;
  const checks: (readonly CheckMade[])[] = [
    passed,
    result.outcome === "valid" ? passed : [{ check: "windowIsOpen", refusal: refusals.usedHere() }],
  ];
  return {
    from,
    read: about satisfies RequestRead,
    checked: { ...about, checks, times: [from + 2.5, from + 3] } satisfies ChecksBegun,
    asked: {
      ...{ serviceId, network: "base", endpoint: "2", purpose: "read", methods: ["eth_call", "eth_call"] },
      ...{ about: new Map([[settlementId, ["eth_call"]]]), durationMs: 0.5, error: "timeout" },
    } satisfies RpcRequested,
    ended: { ...about, status: 200, result, tookMs: 1.25 } satisfies RequestEnded,
  };
}

type Verify = ReturnType<typeof verify>;

function store(kept: KeptPayment, { from, read, checked, asked, ended }: Verify): void {
  const { endpoint, durationMs, error } = asked;
  kept.open(read, from + 2);
  kept.check(checked, from + 2.5);
  kept.call([{ endpoint, methods: ["eth_call"], durationMs, error, at: from + 4 }]);
  kept.end(ended, from + 5);
}

/** What readers get of a verify. */
function told({ read, checked, asked, ended }: Verify): object[] {
  const { requestId, operation } = read;
  const { endpoint, durationMs, error } = asked;
  return [
    { requestId, operation },
    { requestId, checks: checked.checks, times: checked.times },
    { endpoint, methods: ["eth_call"], durationMs, error },
    { requestId, operation, status: 200, result: ended.result, tookMs: 1.25 },
  ];
}

test.each<[string, RequestEnded["result"]]>([
  ["that was valid", { outcome: "valid" }],
  ["that was refused", { outcome: "invalid", reason: "invalid_transaction_state", message: "It was used" }],
])("a verify %s is told as it was published, with its times", (_, result) => {
  const kept = new KeptPayment(settlementId, { payment });
  const one = verify("1", result);
  store(kept, one);
  expect(kept.after(0)).toEqual({ messages: told(one), times: [2, 2.5, 4, 5] });
  expect(kept.request).toEqual(payment);
});

test("a verify under way is told as far as it has come, and the rest to readers who know that", () => {
  const kept = new KeptPayment(settlementId, { payment });
  const one = verify("1");
  kept.open(one.read, 2);
  kept.check(one.checked, 2.5);
  expect(kept.messages).toEqual(told(one).slice(0, 2));
  kept.end(one.ended, 5);
  expect(kept.after(2.5)).toEqual({ messages: told(one).slice(3), times: [5] });
});

test("of verifies one after the other, the first are forgotten first, and readers get those after what they know", () => {
  const kept = new KeptPayment(settlementId, { payment });
  const all = Array.from({ length: 5 }, (_, index) => verify(`${index}`, { outcome: "valid" }, 10 * index));
  for (const one of all) store(kept, one);
  expect(kept.messages).toEqual(all.flatMap(told));
  expect(kept.after(24).messages).toEqual(all.flatMap(told).slice(11));
  expect(kept.forget(6)).toBe(8);
  expect([kept.omitted, kept.kept]).toEqual([8, 12]);
  expect(kept.messages).toEqual(all.slice(2).flatMap(told));
  expect(kept.after(42).messages).toEqual(all.flatMap(told).slice(17));
});

test("what is known of a transaction is told of each payment that it carries, in the order of the times", () => {
  const kept = new KeptPayment(settlementId, { payment });
  const one = verify("1");
  const steps = {
    serviceId,
    network: "base",
    transaction: `0x${"dd".repeat(32)}`,
    step: "broadcast",
  } as const;
  const transaction = new KeptTransaction([steps.transaction, "base 1"], [settlementId]);
  kept.carry(transaction);
  store(kept, one);
  transaction.keep({ ...steps, everywhere: false }, 3);
  transaction.keep({ ...steps, everywhere: true }, 6);
  expect(kept.times).toEqual([2, 2.5, 3, 4, 5, 6]);
  expect(kept.changedAt).toBe(6);
  expect(kept.after(5).messages).toEqual([{ ...steps, everywhere: true }]);
  transaction.forget(1);
  expect([kept.omitted, kept.kept]).toEqual([1, 4]);
});

test("verifies at the same time are told in the order of what was published, each with its checks", () => {
  const kept = new KeptPayment(settlementId, { payment });
  const [one, other] = [verify("1"), verify("2", { outcome: "valid" }, 1.5)];
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
  const kept = new KeptPayment(settlementId, { payment });
  const [one, other] = [verify("1"), verify("2", { outcome: "valid" }, 10)];
  for (const { checked } of [one, other]) checked.checks.push(passed);
  store(kept, one);
  store(kept, other);
  one.checked.checks.push(passed);
  expect(kept.messages[5]).toMatchObject({ requestId: "2", checks: other.checked.checks });
});

test("checks that are made after the caller has left are told, too", () => {
  const kept = new KeptPayment(settlementId, { payment });
  const { read, checked, ended } = verify("1");
  kept.open(read, 1);
  kept.check(checked, 2);
  kept.end({ ...ended, status: undefined, result: { outcome: "abandoned" } }, 5);
  checked.checks.push([{ check: "simulationSucceeds", refusal: undefined }]);
  expect(kept.messages[1]).toMatchObject({ checks: [[{}], [{}], [{ check: "simulationSucceeds" }]] });
});

const bodies: Record<string, object> = {
  "of version 1": exampleBody({ x402Version: 1 }),
  "of version 2": exampleBody({ x402Version: 2 }),
  "with the largest amount": exampleBody({ amount: 2n ** 256n - 1n }),
  "with characters that JSON escapes": exampleBody({ resource: 'https://shop.example/ü?"\\\n' }),
  "that is very long": exampleBody({ x402Version: 2, resource: `https://shop.example/${"x".repeat(5_000)}` }),
};

test.each(Object.entries(bodies))("a payment %s is read of its body as it was", (_, body) => {
  const read = parseBody(body);
  const kept = new KeptPayment(read.settlementId, { payment: read, body: JSON.stringify(body) });
  expect(kept.request).toEqual(read);
});

test("of several requests of a payment, what the newest said is kept", () => {
  const body = JSON.stringify(exampleBody({ resource: "https://shop.example/one" }));
  const other = JSON.stringify(exampleBody({ resource: "https://shop.example/two" }));
  const [first, second] = [parseBody(JSON.parse(body)), parseBody(JSON.parse(other))];
  const kept = new KeptPayment(first.settlementId, { payment: first, body });
  kept.take({ payment: second, body: other });
  expect([kept.request, kept.body]).toEqual([second, other]);
});

test("a payment whose body began with a byte order mark is read as it was", () => {
  const body = exampleBody();
  const read = parseBody(body);
  const kept = new KeptPayment(read.settlementId, { payment: read, body: `\uFEFF${JSON.stringify(body)}` });
  expect(kept.request).toEqual(read);
});

test("a payment on a network of one's own is read of its body as it was", () => {
  const network = { ...networks.base, name: "devnet", caip2: "eip155:777", chainId: 777 } as const;
  const body = exampleBody({ network, x402Version: 2 });
  const parsed = parsePaymentRequest(body, createNetworkRegistry([network]));
  if (!parsed.ok) throw new Error(parsed.invalid.message);
  const { request } = parsed;
  expect(
    new KeptPayment(request.settlementId, { payment: request, body: JSON.stringify(body) }).request,
  ).toEqual(request);
});
