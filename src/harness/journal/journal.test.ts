import { describe, expect, onTestFinished, test, vi } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { publish } from "../../../test/support/publish.ts";
import { nonceMember } from "../../methods/method.ts";
import { explainRefusal } from "../../observe/explain/explanations.ts";
import { createTimeline } from "../../observe/timeline/timeline.ts";
import { localTokens } from "../../payer/local-chains.ts";
import { createJournalStore } from "./journal.ts";
import { describePayment } from "./journal-reader.ts";

const serviceId = "the service";

test.each([
  { which: "its end was noted late", asked: 1_001, answered: 1_020, tookMs: 5, begun: 1_000 },
  {
    which: "all of it took less than a millisecond",
    asked: 1_000,
    answered: 1_000,
    tookMs: 0.75,
    begun: 999.25,
  },
])("a call made for a request stands between it and its answer, even if $which", (times) => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000 });
  const timeline = createTimeline(serviceId);
  onTestFinished(() => {
    timeline.close();
    vi.useRealTimers();
  });
  const journal = createJournalStore(timeline);
  const payment = examplePayment({ payTo: "0x00000000000000000000000000000000000000F0", resource: "" });
  const { settlementId } = payment;
  const request = { serviceId, requestId: "a request", operation: "verify", settlementId, payment } as const;

  publish("request", request);
  const params = [{ data: payment.payment.nonce.toLowerCase() }];
  journal.onExchange({
    at: times.asked,
    tookMs: 0.5,
    calls: [{ method: "eth_call", params, answer: { result: "0x", error: undefined }, faults: [] }],
  });
  vi.setSystemTime(times.answered);
  publish("answer", { ...request, status: 200, result: { outcome: "valid" }, tookMs: times.tookMs });

  const found = journal.payment(settlementId);
  expect(found?.requests).toMatchObject([{ at: times.begun, tookMs: times.tookMs }]);
  const lines =
    found === undefined
      ? []
      : describePayment({ ...found, explanations: [] })
          .split("\n")
          .slice(2);
  expect(lines.map((line) => line.replace(/^ *\+\d+ ms */, ""))).toEqual([
    "POST /v1/verify",
    "eth_call (0.5 ms)",
    expect.stringMatching(/^POST \/v1\/verify → 200 valid in /),
  ]);
});

describe("what mends a payment is advised as a call of the harness, which a test has", () => {
  const { settlementId: id, payment, requirements } = examplePayment();
  const known = {
    ...{ id, network: "base", payer: payment.payer, asset: requirements.asset, value: "10000", token: null },
    ...{ [nonceMember]: payment.nonce, requests: [], open: [], rpcCalls: [], transactions: [] },
  };
  const contracts = { mainnet: payment.payTo, testnet: payment.payTo };
  test.each([
    ["insufficient_funds", {}, `harness.networks.base.fund("${payment.payer}", 10000n)`],
    [
      "permit2_allowance_required",
      { network: "base-sepolia", asset: localTokens.plain.address },
      `harness.networks["base-sepolia"].approvePermit2("${payment.payer}", 10000n, "plain")`,
    ],
  ])("%s", (reason, change, call) => {
    const refused = { reason, message: undefined, request: undefined, at: 0 };
    const text = describePayment({
      ...known,
      ...change,
      explanations: explainRefusal(refused, { contracts }),
    });
    expect(text).toContain(` On a local chain: \`${call}\`.\n`);
    expect(text).not.toContain("`x402-kit");
  });

  test("a reset", () => {
    const refused = { reason: "insufficient_funds", message: undefined, request: undefined, at: 0 };
    const [first] = explainRefusal(refused, { contracts });
    const explanations = first === undefined ? [] : [{ ...first, fix: "`x402-kit reset` puts it back." }];
    expect(describePayment({ ...known, explanations })).toContain(
      "fix:      `harness.reset()` puts it back.",
    );
  });
});
