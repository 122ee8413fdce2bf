import { describe, expect, test } from "vitest";
import type { TimelineEntry } from "../../timeline/payment-view.ts";
import { ofNewestTransaction, phasesOf, sequenceOf } from "./diagram-rows.ts";

const at = 1_790_000_000_000;

function entry(
  ms: number,
  kind: TimelineEntry["kind"],
  title: string,
  more: Partial<TimelineEntry> = {},
): TimelineEntry {
  const none = { requestId: null, tookMs: null, operation: null, outcome: null };
  return { at: at + ms, kind, title, ok: true, ...none, details: {}, ...more };
}

const verify = [
  entry(0, "request", "POST /v1/verify", { operation: "verify", requestId: "a" }),
  entry(1, "check", "networkIsEnabled", { requestId: "a" }),
  entry(21, "rpc", "eth_call, eth_call, eth_getBalance", { requestId: "a", tookMs: 20 }),
  entry(22, "check", "windowIsOpen", { requestId: "a" }),
  entry(25, "answer", "verify: valid", {
    operation: "verify",
    outcome: "valid",
    requestId: "a",
    tookMs: 26,
    details: { status: 200 },
  }),
];
const transaction = `0x${"5f".repeat(32)}`;
const settle = [
  entry(30, "request", "POST /v1/settle", { operation: "settle", requestId: "b" }),
  entry(40, "ledger", "claimed"),
  entry(41, "transaction", "broadcast", { details: { transaction } }),
  entry(60, "transaction", "receipt", { details: { transaction, blockNumber: "7", succeeded: true } }),
  entry(70, "answer", "settle: settled", {
    operation: "settle",
    outcome: "settled",
    requestId: "b",
    tookMs: 40,
    details: { status: 200, transaction },
  }),
  entry(90, "ledger", "delivered"),
];

describe("the rows of a waterfall", () => {
  const phases = phasesOf([...verify, ...settle]);

  test("each request has its own, from its first byte, and what followed stands behind them", () => {
    expect(phases.map(({ name, start, end, outcome }) => [name, start - at, end - at, outcome])).toEqual([
      ["verify", -1, 25, "valid"],
      ["settle", 30, 70, "settled"],
      ["later", 90, 90, undefined],
    ]);
  });

  test("the checks that passed are one row, calls say how often each was made, and a block how long it was waited for", () => {
    const shown = phases.map(({ rows }) =>
      rows.map(({ kind, title, start, end }) => [kind, title, start - at, end - at]),
    );
    expect(shown).toEqual([
      [
        ["check", "2 checks passed", 1, 22],
        ["rpc", "eth_call ×2, eth_getBalance", 1, 21],
        ["answer", "verify: valid", 25, 25],
      ],
      [
        ["ledger", "claimed", 40, 40],
        ["transaction", "broadcast", 41, 41],
        ["block", "mined in block 7", 41, 60],
        ["answer", "settle: settled", 70, 70],
      ],
      [["ledger", "delivered", 90, 90]],
    ]);
    expect(phases[0]?.rows[0]?.passed.map(({ name }) => name)).toEqual([
      "network is enabled",
      "window is open",
    ]);
  });

  test("a request that is not answered yet has no outcome, and no length", () => {
    const [first] = verify;
    const [phase] = phasesOf(first === undefined ? [] : [first]);
    expect(phase).toMatchObject({ name: "verify", start: at, end: at, outcome: undefined, rows: [] });
  });

  test("two settles at once keep what belongs to each apart", () => {
    const both = phasesOf([
      entry(0, "request", "POST /v1/settle", { operation: "settle", requestId: "a" }),
      entry(1, "request", "POST /v1/settle", { operation: "settle", requestId: "b" }),
      entry(2, "check", "signatureHolds", { requestId: "b" }),
      entry(9, "answer", "settle: settled", {
        operation: "settle",
        outcome: "settled",
        requestId: "a",
        tookMs: 9,
      }),
      entry(10, "answer", "settle: invalid", {
        operation: "settle",
        outcome: "invalid",
        requestId: "b",
        tookMs: 9,
        ok: false,
      }),
    ]);
    expect(both.map(({ outcome, rows }) => [outcome, rows.length])).toEqual([
      ["settled", 1],
      ["invalid", 2],
    ]);
  });
});

describe("the steps of a sequence", () => {
  test("what a proxy saw between client and shop is solid, around what the facilitator did", () => {
    const exchange = { method: "GET", url: "http://127.0.0.1:4403/report", accepted: null, body: null };
    const steps = sequenceOf({
      timeline: [...verify, ...settle],
      settledAt: at + 70,
      signed: {},
      exchanges: [
        {
          ...exchange,
          sentAt: at - 9,
          endedAt: at - 8,
          header: null,
          status: 402,
          challenges: [{}],
          receipt: null,
        },
        {
          ...exchange,
          sentAt: at - 5,
          endedAt: at + 71,
          header: "PAYMENT-SIGNATURE",
          status: 200,
          challenges: [],
          receipt: {},
        },
      ],
    });
    expect(steps.every(({ isSeen }) => isSeen)).toBe(true);
    const between = steps.filter(({ from, to }) => from + to === 1);
    expect(between.map(({ from, label, tone }) => [from, label, tone])).toEqual([
      [0, "GET /report", "plain"],
      [1, "402 and its offers", "plain"],
      [0, "GET /report with PAYMENT-SIGNATURE", "plain"],
      [1, "200 and the receipt", "good"],
    ]);
    expect(steps.slice(0, 3)).toEqual(between.slice(0, 3));
    expect(steps.at(-1)).toBe(between[3]);
  });

  const payment = (timeline: TimelineEntry[], settledAt: number | null = null) => ({
    timeline,
    settledAt,
    signed: {},
  });
  const labelsOf = (one: ReturnType<typeof payment>) =>
    sequenceOf(one).map(({ from, to, label }) => `${from}${to} ${label}`);

  test("a payment that settles goes to the chain and back to the client", () => {
    expect(labelsOf(payment([...verify, ...settle], at + 70))).toEqual([
      "01 request with the signed payment",
      "12 POST /verify",
      "23 1 RPC request · 20 ms",
      "21 valid · 26 ms",
      "12 POST /settle",
      "23 transaction 0x5f5f…5f5f",
      "32 mined in block 7",
      "21 settled · 40 ms",
      "10 200 and what was paid for",
    ]);
  });

  test("a transaction that is sent again and again is one arrow", () => {
    const sent = settle.find(({ title }) => title === "broadcast");
    const again = [42, 43].map((ms) => ({ ...sent, at: at + ms }) as (typeof settle)[number]);
    const labels = labelsOf(payment([...verify, ...settle, ...again].toSorted((a, b) => a.at - b.at)));
    expect(labels.filter((label) => label.includes("transaction"))).toEqual([
      "23 transaction 0x5f5f…5f5f ×3",
    ]);
  });

  test("a refusal ends in 402, and what is open ends where it is", () => {
    const refused = entry(5, "answer", "verify: invalid", {
      operation: "verify",
      outcome: "invalid",
      requestId: "a",
      tookMs: 5,
      ok: false,
      details: { status: 200, reason: "insufficient_funds" },
    });
    expect(labelsOf(payment([...verify.slice(0, 1), refused]))).toEqual([
      "01 request with the signed payment",
      "12 POST /verify",
      "21 insufficient_funds · 5.0 ms",
      "10 402 Payment Required",
    ]);
    const undetermined = entry(5, "answer", "verify: undetermined", {
      operation: "verify",
      outcome: "undetermined",
      requestId: "a",
      tookMs: 5,
      ok: false,
      details: { status: 503, reason: "undetermined" },
    });
    expect(labelsOf(payment([...verify.slice(0, 1), undetermined])).slice(2)).toEqual([
      "21 undetermined · 5.0 ms",
      "10 nothing that is paid for, yet",
    ]);
    expect(labelsOf(payment(verify.slice(0, 1)))).toEqual([
      "01 request with the signed payment",
      "12 POST /verify",
    ]);
  });
});

test("what is known of a transaction is its own, though another one with its txNonce has offered more", () => {
  const other = `0x${"6f".repeat(32)}`;
  const signed = [
    entry(0, "transaction", "signed", { details: { transaction, maxFeePerGas: "100" } }),
    entry(1, "transaction", "signed", { details: { transaction: other, maxFeePerGas: "200" } }),
  ];
  const mined = entry(2, "transaction", "receipt", { details: { transaction, blockNumber: "7" } });
  expect(ofNewestTransaction(signed)).toEqual({ transaction: other, maxFeePerGas: "200" });
  expect(ofNewestTransaction([...signed, mined])).toEqual({
    transaction,
    maxFeePerGas: "100",
    blockNumber: "7",
  });
});
