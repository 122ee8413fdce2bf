import { expect, onTestFinished, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { publish } from "../../../test/support/publish.ts";
import { createTimeline } from "../../observe/timeline/timeline.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { TimeBudget } from "../../util/waiting.ts";
import type { PaymentLine } from "../kit/payment-line.ts";
import { followPayments } from "./follow.ts";

const contract = "0x00000000000000000000000000000000000000F0";
const reason = "invalid_exact_evm_payload_signature";
const message = "The signature is not that of the payer";

/** The lines of so many payments whose nonce was changed after signing. */
function linesOf(payments: number, budget?: TimeBudget): PaymentLine[] {
  const lines: PaymentLine[] = [];
  const context = { contracts: { mainnet: contract, testnet: contract } } as const;
  const timeline = createTimeline("the service");
  onTestFinished(() => timeline.close());
  onTestFinished(
    followPayments(timeline, context, (line) => lines.push(line), "http://127.0.0.1:4402", budget),
  );
  for (let index = 0; index < payments; index++) {
    const nonce: Hex = `0x${index.toString(16).padStart(64, "0")}`;
    // Its r is of a point of the curve, so that it is some key's signature.
    const signature: Hex = `0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798${"02".repeat(32)}1b`;
    const payment = examplePayment({ payTo: contract, resource: "", nonce, signature });
    const { settlementId } = payment;
    publish("answer", {
      serviceId: "the service",
      requestId: `${index}`,
      operation: "verify",
      settlementId,
      payment,
      status: 200,
      result: { outcome: "invalid", reason, message },
      tookMs: 3,
    });
  }
  return lines;
}

test("a flood of wrong signatures holds up the process for a moment only, and each has its line, in order", () => {
  const lines = linesOf(500);
  // All of them explained would take two seconds.
  expect(lines.filter(({ fix }) => fix?.includes("recovers to 0x")).length).toBeLessThan(250);
  const ids = lines.map(({ id }) => id);
  expect(new Set(ids).size).toBe(500);
  expect(lines.every((line) => line.reason === reason && line.message === message)).toBe(true);
  expect(lines.at(0)?.fix).toContain("recovers to 0x");
  expect(lines.at(-1)?.fix).toBe(
    `Many payments are being refused; \`npx --no-install x402-kit why ${ids.at(-1)}\` says what is wrong with this one.`,
  );
  expect(lines.at(-1)?.more).toBe("http://127.0.0.1:4402/errors#invalid_exact_evm_payload_signature");
});

test("payments are explained whose lines are few", () => {
  const unlimited: TimeBudget = { spend: (work) => work() };
  expect(linesOf(3, unlimited).map(({ fix }) => fix?.includes("recovers to 0x"))).toEqual([true, true, true]);
});

test("no line is explained while there is no time for it", () => {
  const [line] = linesOf(1, { spend: () => undefined });
  expect(line).toMatchObject({ operation: "verify", outcome: "invalid", reason, message });
  expect(line?.fix).toContain("x402-kit why 0x");
});
