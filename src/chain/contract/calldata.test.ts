import fc from "fast-check";
import { encodeFunctionData, parseAbi } from "viem/utils";
import { expect, test } from "vitest";
import { x402FacilitatorAbi } from "../../contracts/x402Facilitator.ts";
import { toHex } from "../../protocol/hex.ts";
import {
  encodeForwardReceived,
  encodeIsValidSignature,
  encodeSettle,
  encodeSettleBatch,
} from "./calldata.ts";
import type { SettleCall } from "./calls.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(toHex);
const uint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
const address = bytes(20);
const signature = fc.oneof(bytes(65), fc.uint8Array({ maxLength: 200 }).map(toHex));

const settleCall: fc.Arbitrary<SettleCall> = fc.record({
  asset: address,
  authorization: fc.record({
    from: address,
    to: address,
    value: uint256,
    validAfter: uint256,
    validBefore: uint256,
    nonce: bytes(32),
  }),
  signature,
  recipient: address,
});

test.each([
  ["settle", encodeSettle],
  ["forwardReceived", encodeForwardReceived],
] as const)("%s is encoded as viem encodes it", (functionName, encode) => {
  fc.assert(
    fc.property(settleCall, (call) => {
      const { asset, authorization, signature, recipient } = call;
      expect(encode(call)).toBe(
        encodeFunctionData({
          abi: x402FacilitatorAbi,
          functionName,
          args: [asset, authorization, signature, recipient],
        }),
      );
    }),
  );
});

test("settleBatch is encoded as viem encodes it, one group for each recipient in the order they appear", () => {
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
        return { ...call, asset, recipient: recipient ?? call.recipient };
      }),
    }));
  fc.assert(
    fc.property(batch, ({ asset, calls }) => {
      const groups = [...new Set(calls.map(({ recipient }) => recipient))].map((recipient) => ({
        recipient,
        payments: calls.filter((call) => call.recipient === recipient),
      }));
      expect(encodeSettleBatch(asset, calls)).toBe(
        encodeFunctionData({ abi: x402FacilitatorAbi, functionName: "settleBatch", args: [asset, groups] }),
      );
    }),
  );
});

test("recipients that differ in casing only are one group", () => {
  const [call] = fc.sample(settleCall, 1);
  if (call === undefined) throw new Error("no sample");
  const upper = { ...call, recipient: `0x${"AB".repeat(20)}` as const };
  const lower = { ...call, recipient: `0x${"ab".repeat(20)}` as const };
  expect(encodeSettleBatch(call.asset, [upper, lower])).toBe(encodeSettleBatch(call.asset, [lower, lower]));
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
