import { expect, onTestFinished, test, vi } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { channels, type PaymentOutcome } from "../channels/channels.ts";
import { createBlockTimes } from "./block-times.ts";

const serviceId = "the service";
const payment = examplePayment({ payTo: "0x00000000000000000000000000000000000000F0" });
const network = payment.knownNetwork.name;

function start(readTime: () => Promise<bigint | undefined>) {
  const reading = vi.fn(readTime);
  const times = createBlockTimes(serviceId, reading);
  onTestFinished(() => times.close());
  return { ...times, reading };
}

const seeBlock = (number: bigint, timestamp: bigint) =>
  channels.block.publish(() => ({ serviceId, network, number, timestamp }));

function end(outcome: PaymentOutcome, tookMs = 3): void {
  const { settlementId } = payment;
  const about = { serviceId, requestId: "1", operation: "verify", settlementId, payment } as const;
  channels.payment.publish(() => ({ ...about, status: 200, result: { outcome }, tookMs }));
}

const now = () => Date.now() + 1;
/** Until the chain was asked. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a chain's time is that of the newest block that was seen", () => {
  const { timeAt, headAt } = start(async () => undefined);
  expect(timeAt(network, now())).toBeUndefined();
  seeBlock(7n, 5_000n);
  expect([timeAt(network, now()), headAt(network, now())]).toEqual([5_000n, 7n]);
  expect(timeAt(network, Date.now() - 10_000)).toBeUndefined();
});

test("of a payment that was refused without a look at its chain, the time is the chain's all the same", async () => {
  const { timeAt, headAt, reading } = start(async () => 8_600n);
  seeBlock(7n, 5_000n);
  end("valid");
  expect(reading).not.toHaveBeenCalled();
  await new Promise((resolve) => setTimeout(resolve, 20));
  const at = now();
  end("invalid");
  await settled();
  expect([timeAt(network, at), headAt(network, at)]).toEqual([8_600n, 7n]);
});

test("however many payments are refused at once, a chain is asked once at a time, and blocks are not forgotten", async () => {
  const { headAt, reading } = start(async () => 5_000n);
  seeBlock(7n, 5_000n);
  for (let count = 0; count < 1_000; count++) end("invalid", 0);
  expect(reading).toHaveBeenCalledTimes(1);
  for (let round = 0; round < 20; round++) {
    await settled();
    end("invalid", 0);
  }
  expect(headAt(network, now())).toBe(7n);
});

test("what a chain says after it began anew, or when it has ended, is not taken for its time", async () => {
  const answer = Promise.withResolvers<bigint>();
  const { timeAt, clear, reading } = start(() => answer.promise);
  end("invalid");
  clear();
  answer.resolve(8_600n);
  await settled();
  expect(timeAt(network, now())).toBeUndefined();
  reading.mockRejectedValueOnce(new Error("the node has ended"));
  end("invalid");
  await settled();
  expect(timeAt(network, now())).toBeUndefined();
});
