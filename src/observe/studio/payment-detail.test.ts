import { expect, onTestFinished, test, vi } from "vitest";
import { exampleBody, examplePayment, parseBody } from "../../../test/support/example-payment.ts";
import { publish } from "../../../test/support/publish.ts";
import { authorizationOf } from "../../methods/exact-eip3009/eip3009-method.ts";
import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import { problemDetails } from "../../protocol/problems.ts";
import { refusals } from "../../protocol/refusals.ts";
import { describeReceived, type RequestResult, type SettlementStep } from "../channels/channels.ts";
import { createTimeline } from "../timeline/timeline.ts";
import { bodyOf, describePayment, explainReceived, shownBody } from "./payment-detail.ts";

const serviceId = "the service";
const contract = "0x00000000000000000000000000000000000000F0";
const contracts = { mainnet: contract, testnet: contract } as const;
const transaction = `0x${"ab".repeat(32)}` as const;
const submission = `0x${"cd".repeat(32)}` as const;

const use: PaymentUse = {
  kind: "used",
  transaction: submission,
  blockNumber: 7n,
  timestamp: 1_700_000_000n,
  sender: `0x${"5a".repeat(20)}`,
  to: null,
  moved: { to: contract, value: 10_000n },
};

const payment = examplePayment({ payTo: contract });
const { settlementId } = payment;

/** A payment whose settle had a result, and then steps in the ledger; its authorization was used on the token. */
async function describe(result: RequestResult, steps: readonly SettlementStep[]) {
  const timeline = createTimeline(serviceId);
  onTestFinished(() => timeline.close());
  const about = { serviceId, requestId: "1", operation: "settle", settlementId, payment } as const;
  publish("request", about);
  publish("answer", { ...about, status: 200, result, tookMs: 3 });
  for (const step of steps) publish("settlement", step);
  const record = timeline.find(settlementId);
  if (record === undefined) throw new Error("the timeline has no such payment");
  const authorizationUse = vi.fn(async () => use);
  const { explanations } = await describePayment(record, { contracts }, { authorizationUse });
  return { explanations, asked: authorizationUse.mock.calls.length };
}

const failed = { serviceId, settlementId, step: "failed", transaction, failure: "reverted" } as const;

test.each<{ which: string; result: RequestResult; steps: readonly SettlementStep[] }>([
  {
    which: "was refused for it",
    result: { outcome: "invalid", reason: "invalid_transaction_state" },
    steps: [],
  },
  {
    which: "expired after it, before the shop settled",
    result: { outcome: "invalid", reason: "invalid_exact_evm_payload_authorization_valid_before" },
    steps: [],
  },
  {
    which: "failed with a transaction that reverted",
    result: { outcome: "invalid", reason: "invalid_transaction_state", transaction },
    steps: [failed],
  },
  {
    which: "failed after its settle was answered as pending",
    result: { outcome: "pending", transaction },
    steps: [failed],
  },
  {
    which: "failed, and waits for recovery",
    result: { outcome: "pending", transaction },
    steps: [failed, { serviceId, settlementId, step: "recoveryQueued", directSubmission: submission }],
  },
])("a use straight on the token is told of a payment that $which", async ({ result, steps }) => {
  const { explanations } = await describe(result, steps);
  expect(explanations[0]).toMatchObject({
    title: "The authorization was used before",
    got: expect.stringContaining(`in transaction ${submission} of block 7`),
  });
});

test.each<{ which: string; result: RequestResult; steps: readonly SettlementStep[] }>([
  { which: "lacked the balance", result: { outcome: "invalid", reason: "insufficient_funds" }, steps: [] },
  { which: "is still being settled", result: { outcome: "pending", transaction }, steps: [] },
  {
    which: "was settled after all",
    result: { outcome: "pending", transaction },
    steps: [{ serviceId, settlementId, step: "settled", transaction }],
  },
])("the chain is not asked about the use of a payment that $which", async ({ result, steps }) => {
  expect(await describe(result, steps)).toMatchObject({ asked: 0 });
});

test("the chain's clock is compared with this machine's by the time of the refusal, however long ago that was", async () => {
  const timeline = createTimeline(serviceId);
  onTestFinished(() => timeline.close());
  const { validBefore } = authorizationOf(payment.payment);
  const { reason, message, situation, chainTime } = refusals.tooLate(
    { window: payment.payment.window, words: payment.words },
    validBefore + 5n,
  );
  const about = { serviceId, requestId: "1", operation: "settle", settlementId, payment } as const;
  const result = { outcome: "invalid", reason, message, situation, chainTime } as const;
  vi.useFakeTimers({ toFake: ["Date"], now: Number(validBefore + 5n) * 1_000 });
  onTestFinished(() => void vi.useRealTimers());
  publish("answer", { ...about, status: 200, result, tookMs: 3 });
  vi.setSystemTime(Number(validBefore + 605n) * 1_000);
  publish("delivery", { serviceId, requestId: "1", settlementId, fate: "delivered" });
  const record = timeline.find(settlementId);
  if (record === undefined) throw new Error("the timeline has no such payment");
  const { explanations } = await describePayment(record, { contracts }, undefined);
  expect(explanations).toMatchObject([
    { mistake: "expired", got: `${validBefore} (2033-05-18 03:33:20 UTC, 5 s ago)` },
  ]);
});

function explained(contentType: string | undefined, message: string) {
  const body = "\u001f\u008b";
  const [explanation] = explainReceived(
    { reason: "unsupported-media-type", message, at: 0 },
    describeReceived(body, { bytes: 2, isWhole: true, contentType }),
    { contracts },
  );
  return explanation;
}

test.each(["application/json", "Application/JSON; charset=utf-8"])(
  "a compressed body that is said to be %s is not told to say so",
  (contentType) => {
    expect(explained(contentType, problemDetails.contentEncoding("gzip"))).toMatchObject({
      title: expect.stringContaining("compressed (gzip)"),
      at: "content-encoding",
      got: null,
      expected: null,
      fix: "Send the body as plain JSON, without content-encoding.",
    });
  },
);

test.each([
  ["text/plain", "text/plain"],
  ["application/json-seq", "application/json-seq"],
  [undefined, "none"],
])("a body of the type %s is told of the right one", (contentType, got) => {
  expect(explained(contentType, problemDetails.mediaType)).toMatchObject({
    at: "content-type",
    got,
    expected: "application/json",
  });
});

const context = { contracts };
const came = {
  ...exampleBody({ x402Version: 2 }),
  unknown: { token: 'x"y', deep: [{ url: "https://user:word@shop.example/?key=hidden" }], flag: true },
};
const request = parseBody(came);

test("a body is sent again as it came, and made anew where it was not kept", () => {
  expect(bodyOf({ body: JSON.stringify(came) }, request, context)).toEqual(came);
  expect(bodyOf({ body: undefined }, request, context)).toMatchObject({ paymentPayload: { x402Version: 2 } });
});

test("a body is shown without its signature, and with what may be a secret masked, but for what names the payment", () => {
  const shown = shownBody({ body: JSON.stringify(came) }, request, context, () => "cut");
  expect(shown).toMatchObject({
    paymentPayload: { payload: { signature: "cut", authorization: { nonce: request.payment.nonce } } },
    paymentRequirements: Reflect.get(came, "paymentRequirements"),
    unknown: { deep: [{ url: "https://user:••••@shop.example/?key=••••••" }], flag: true },
  });
  const text = JSON.stringify(shown);
  for (const secret of ["hidden", "word@", 'x\\"y', request.payment.signature.slice(10)])
    expect(text).not.toContain(secret);
});
