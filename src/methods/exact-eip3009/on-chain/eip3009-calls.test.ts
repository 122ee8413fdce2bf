import fc from "fast-check";
import { encodeFunctionData, parseAbi } from "viem/utils";
import { expect, test } from "vitest";
import { encodeIsValidSignature } from "../../../chain/views.ts";
import { mockUsdcAbi } from "../../../contracts/mockUsdc.ts";
import { x402FacilitatorAbi } from "../../../contracts/x402Facilitator.ts";
import { toHex } from "../../../protocol/hex.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
import { authorizationOf, paymentOf } from "../eip3009-method.ts";
import {
  encodeForwardReceived,
  encodeSettle,
  encodeSettleBatch,
  encodeTransfer,
  encodeTransferBatch,
} from "./eip3009-calls.ts";

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
