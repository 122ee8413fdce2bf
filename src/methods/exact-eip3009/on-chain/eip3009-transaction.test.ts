import fc from "fast-check";
import { encodeFunctionData, parseAbi } from "viem/utils";
import { describe, expect, test } from "vitest";
import { calldataGas } from "../../../chain/fees.ts";
import { encodeIsValidSignature } from "../../../chain/views.ts";
import { mockUsdcAbi } from "../../../contracts/mockUsdc.ts";
import { x402FacilitatorAbi } from "../../../contracts/x402Facilitator.ts";
import { type Address, toHex } from "../../../protocol/hex.ts";
import { networks } from "../../../protocol/networks.ts";
import { wrapErc6492 } from "../../../protocol/signed-payment.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
import { authorizationOf, paymentOf } from "../eip3009-method.ts";
import { exactEip3009Settling } from "./eip3009-settling.ts";
import {
  countBatch,
  encodeForwardReceived,
  encodeSettle,
  encodeSettleBatch,
  encodeTransfer,
  encodeTransferBatch,
  settlesSeveral,
  settleTransaction,
} from "./eip3009-transaction.ts";

const network = { facilitatorContract: `0x${"fa".repeat(20)}` as const };

describe("a batch holds as many payments as", () => {
  const limits = { maxPayments: 50, maxFeePerGas: 1n, maxCost: 10n ** 30n };
  const callsWith = (signatureBytes: number, count = 60): SettleCall[] =>
    Array.from({ length: count }, (_, index) => call(index, signatureBytes));

  test("a transaction may have", () => {
    expect(countBatch(callsWith(65), network, limits)).toBe(50);
    expect(countBatch(callsWith(65, 7), network, limits)).toBe(7);
    expect(countBatch([], network, limits)).toBe(0);
  });

  test("64 KiB of calldata hold, and one in any case", () => {
    const calls = callsWith(4_096);
    const fitting = countBatch(calls, network, limits);
    expect(settleTransaction(calls.slice(0, fitting), network).data.length / 2).toBeLessThan(65_536);
    expect(fitting).toBeGreaterThan(12);
    expect(countBatch(callsWith(70_000), network, limits)).toBe(1);
  });

  test("the gas of one transaction covers, which is then never cut down", () => {
    for (const bytes of [65, 500, 1_000, 1_500, 2_000]) {
      const calls = callsWith(bytes);
      const { gas } = settleTransaction(calls.slice(0, countBatch(calls, network, limits)), network);
      expect(gas).toBeLessThan(2n ** 24n);
    }
  });

  test("may be paid for: none where the first alone costs too much", () => {
    const calls = callsWith(65);
    const maxFeePerGas = 3n;
    for (const maxCost of [1_600_000n, 3_000_000n, 9_000_000n]) {
      const fitting = countBatch(calls, network, { ...limits, maxFeePerGas, maxCost });
      expect(fitting).toBeGreaterThan(0);
      expect(settleTransaction(calls.slice(0, fitting), network).gas * maxFeePerGas).toBeLessThanOrEqual(
        maxCost,
      );
    }
    expect(countBatch(calls, network, { ...limits, maxFeePerGas, maxCost: 1_500_000n })).toBe(0);
  });
});

const call = (recipient: number, signatureBytes = 65): SettleCall => ({
  ...callTo(network.facilitatorContract, signatureBytes),
  recipient: `0x${recipient.toString(16).padStart(40, "0")}`,
});

const callTo = (to: Address, signatureBytes = 65): SettleCall => ({
  payment: paymentOf(networks.base.usdc.address, {
    authorization: {
      from: `0x${"11".repeat(20)}`,
      to,
      value: 1n,
      validAfter: 0n,
      validBefore: 2n ** 40n,
      nonce: `0x${"22".repeat(32)}`,
    },
    signature: `0x${"33".repeat(signatureBytes)}`,
  }),
  recipient: to,
});

test("no two payments that deploy a wallet share a transaction, whatever they have in common", () => {
  const one = callTo(`0x${"ee".repeat(20)}`);
  const signature = wrapErc6492(one.recipient, "0x", one.payment.signature);
  const other: Address = `0x${"dd".repeat(20)}`;
  const calls = [
    { ...one.payment, signature },
    { ...one.payment, signature, asset: other },
    { ...one.payment, signature, payer: other },
    { ...one.payment, signature, nonce: `0x${"23".repeat(32)}` as const },
  ];
  const keys = calls.map((payment) => exactEip3009Settling.batchKey({ ...one, payment }, network));
  expect(new Set(keys).size).toBe(calls.length);
});

test("one payment is settled by settle, several by settleBatch", () => {
  expect(settleTransaction([call(1)], network).data).toBe(encodeSettle(call(1)));
  const calls = [call(1), call(2), call(1)];
  expect(settleTransaction(calls, network).data).toBe(encodeSettleBatch(networks.base.usdc.address, calls));
  expect(() => settleTransaction([], network)).toThrow(RangeError);
});

test("what goes straight to its payee is a transaction to the token, with what a payment may use in a batch", () => {
  const straight = callTo(`0x${"ee".repeat(20)}`);
  const { to, data, gas } = settleTransaction([straight], network);
  expect({ to, data }).toEqual({ to: networks.base.usdc.address, data: encodeTransfer(straight.payment) });
  expect(gas).toBe(21_000n + 250_000n + calldataGas(data));
});

test("several go there by transferBatch of the contract, as many as a transaction may have", () => {
  const calls = Array.from({ length: 60 }, () => callTo(`0x${"ee".repeat(20)}`));
  const limits = { maxPayments: 50, maxFeePerGas: 1n, maxCost: 10n ** 30n };
  expect(countBatch(calls, network, limits)).toBe(50);
  const { to, data, gas } = settleTransaction(calls.slice(0, 50), network);
  expect({ to, data }).toEqual({
    to: network.facilitatorContract,
    data: encodeTransferBatch(networks.base.usdc.address, calls.slice(0, 50)),
  });
  expect(gas).toBeGreaterThan(50n * 250_000n + 60_000n);
  expect(gas).toBeLessThan(2n ** 24n);
  expect(settlesSeveral(data)).toBe(true);
});

test("50 payments fit in one transaction with room for all pulls to burn what they may", () => {
  const calls = Array.from({ length: 50 }, (_, index) => call(index));
  const { gas } = settleTransaction(calls, network);
  expect(gas).toBeGreaterThan(50n * 250_000n + 500_000n);
  expect(gas).toBeLessThan(2n ** 24n);
});

test("a gas limit never exceeds what a transaction may ask for", () => {
  const calls = Array.from({ length: 100 }, (_, index) => call(index));
  expect(settleTransaction(calls, network).gas).toBe(2n ** 24n);
});

test("a long signature of a wallet is paid for", () => {
  const [short, long] = [
    settleTransaction([call(1)], network),
    settleTransaction([call(1, 65 + 1_024)], network),
  ];
  expect(long.gas - short.gas).toBeGreaterThanOrEqual(1_024n * 40n);
});

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(toHex);
const uint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
const address = bytes(20);
const signature = fc.oneof(bytes(65), fc.uint8Array({ maxLength: 200 }).map(toHex));

const signed = fc.record({
  authorization: fc.record({
    from: address,
    to: address,
    value: uint256,
    validAfter: uint256,
    validBefore: uint256,
    nonce: bytes(32),
  }),
  signature,
});

const settleCall: fc.Arbitrary<SettleCall> = fc
  .tuple(address, signed, address)
  .map(([asset, one, recipient]) => ({ payment: paymentOf(asset, one), recipient }));

test.each([
  ["settle", encodeSettle],
  ["forwardReceived", encodeForwardReceived],
] as const)("%s is encoded as viem encodes it", (functionName, encode) => {
  fc.assert(
    fc.property(settleCall, (call) => {
      const { payment, recipient } = call;
      expect(encode(call)).toBe(
        encodeFunctionData({
          abi: x402FacilitatorAbi,
          functionName,
          args: [payment.asset, authorizationOf(payment), payment.signature, recipient],
        }),
      );
    }),
  );
});

test("transferWithAuthorization is encoded as viem encodes it", () => {
  fc.assert(
    fc.property(settleCall, ({ payment }) => {
      const { from, to, value, validAfter, validBefore, nonce } = authorizationOf(payment);
      const args = [from, to, value, validAfter, validBefore, nonce, payment.signature] as const;
      expect(encodeTransfer(payment)).toBe(
        encodeFunctionData({ abi: mockUsdcAbi, functionName: "transferWithAuthorization", args }),
      );
    }),
  );
});

test.each([
  ["settleBatch", encodeSettleBatch],
  ["transferBatch", encodeTransferBatch],
] as const)(
  "%s is encoded as viem encodes it, one group for each recipient in the order they appear",
  (functionName, encode) => {
    const batch = fc
      .tuple(
        address,
        fc.array(settleCall, { maxLength: 12 }),
        fc.array(address, { minLength: 1, maxLength: 4 }),
        fc.infiniteStream(fc.nat()),
      )
      .map(([asset, calls, recipients, picks]) => ({
        asset,
        calls: calls.map((call) => {
          const recipient = recipients[picks.next().value % recipients.length];
          return { payment: { ...call.payment, asset }, recipient: recipient ?? call.recipient };
        }),
      }));
    fc.assert(
      fc.property(batch, ({ asset, calls }) => {
        const groups = [...new Set(calls.map(({ recipient }) => recipient))].map((recipient) => ({
          recipient,
          payments: calls
            .filter((call) => call.recipient === recipient)
            .map(({ payment }) => ({
              authorization: authorizationOf(payment),
              signature: payment.signature,
            })),
        }));
        expect(encode(asset, calls)).toBe(
          encodeFunctionData({ abi: x402FacilitatorAbi, functionName, args: [asset, groups] }),
        );
      }),
    );
  },
);

test("recipients that differ in casing only are one group", () => {
  const [call] = fc.sample(settleCall, 1);
  if (call === undefined) throw new Error("no sample");
  const upper = { ...call, recipient: `0x${"AB".repeat(20)}` as const };
  const lower = { ...call, recipient: `0x${"ab".repeat(20)}` as const };
  expect(encodeSettleBatch(call.payment.asset, [upper, lower])).toBe(
    encodeSettleBatch(call.payment.asset, [lower, lower]),
  );
});

test("isValidSignature is encoded as viem encodes it", () => {
  fc.assert(
    fc.property(bytes(32), signature, (digest, signature) => {
      expect(encodeIsValidSignature(digest, signature)).toBe(
        encodeFunctionData({
          abi: parseAbi(["function isValidSignature(bytes32 digest, bytes signature) view returns (bytes4)"]),
          functionName: "isValidSignature",
          args: [digest, signature],
        }),
      );
    }),
  );
});
