import fc from "fast-check";
import { serializeTransaction } from "viem";
import { expect, test } from "vitest";
import type { Hex } from "../../protocol/hex.ts";
import { encodeTransaction } from "./encode-transaction.ts";

const hex = (length: { min: number; max: number }) =>
  fc
    .uint8Array({ minLength: length.min, maxLength: length.max })
    .map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`);

const transactions = fc.record({
  chainId: fc.constantFrom(1, 10, 137, 8453, 84_532, 11_155_420),
  nonce: fc.oneof(fc.constantFrom(0, 1, 127, 128, 255, 256), fc.nat()),
  to: hex({ min: 20, max: 20 }),
  data: fc.oneof(hex({ min: 0, max: 60 }), hex({ min: 200, max: 1_000 }), hex({ min: 65_600, max: 65_600 })),
  gas: fc.bigInt({ min: 0n, max: 2n ** 24n }),
  maxFeePerGas: fc.bigInt({ min: 0n, max: 2n ** 70n }),
  maxPriorityFeePerGas: fc.constant(0n),
});

const signatures = fc.record({
  r: hex({ min: 32, max: 32 }),
  s: hex({ min: 32, max: 32 }),
  yParity: fc.constantFrom<0 | 1>(0, 1),
});

test("the same bytes as viem's, before and after signing", () => {
  fc.assert(
    fc.property(transactions, signatures, (transaction, { r, s, yParity }) => {
      const whole = { type: "eip1559", value: 0n, ...transaction } as const;
      expect(encodeTransaction(transaction)).toBe(serializeTransaction(whole));
      const raw = encodeTransaction(transaction, { r: r.slice(2), s: s.slice(2), yParity });
      expect(raw).toBe(serializeTransaction(whole, { r, s, yParity }));
    }),
    { numRuns: 60 },
  );
});

test("leading zeros of a signature are left out, as the chain wants them", () => {
  const to: Hex = `0x${"fa".repeat(20)}`;
  const fees = { maxFeePerGas: 2n, maxPriorityFeePerGas: 1n };
  const transaction = { chainId: 8453, nonce: 7, to, data: "0x", gas: 21_000n, ...fees } as const;
  const [r, s] = [`${"00".repeat(2)}${"7f".repeat(30)}`, `${"00".repeat(31)}05`];
  expect(encodeTransaction(transaction, { r, s, yParity: 1 })).toBe(
    serializeTransaction(
      { type: "eip1559", value: 0n, ...transaction },
      { r: `0x${r}`, s: `0x${s}`, yParity: 1 },
    ),
  );
});
