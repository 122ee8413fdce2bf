import fc from "fast-check";
import { encodeFunctionData, keccak256, parseAbi } from "viem/utils";
import { expect, test } from "vitest";
import { mockExactPermit2ProxyAbi, mockUptoPermit2ProxyAbi } from "../../../contracts/mockPermit2.ts";
import { x402FacilitatorAbi } from "../../../contracts/x402Facilitator.ts";
import { type Address, type Hex, toHex } from "../../../protocol/hex.ts";
import { amountOf, type SettleCall } from "../../on-chain/settling.ts";
import { exactProxyAddress, type Permit, uptoProxyAddress } from "../permit.ts";
import { permitOf, permitPayment } from "../permit2-payload.ts";
import {
  describePermit2Revert,
  encodeForward,
  encodeProxySettle,
  encodeSettle,
  encodeSettleBatch,
  permit2ErrorOf,
  settlesSeveral,
  submitsPayment,
} from "./permit2-calls.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(toHex);
const uint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
const address = bytes(20);
const signature = fc.oneof(bytes(65), fc.uint8Array({ maxLength: 200 }).map(toHex));
const contract: Address = `0x${"fa".repeat(20)}`;
const network = { facilitatorContract: contract };

const permit: fc.Arbitrary<Permit> = fc
  .record({
    ...{ from: address, token: address, amount: uint256, nonce: uint256, deadline: uint256 },
    ...{ to: fc.oneof(address, fc.constant(contract)), validAfter: uint256 },
    facilitator: fc.oneof(fc.constant(undefined), fc.constant(contract)),
  })
  .map(({ facilitator, ...rest }) => ({
    ...rest,
    spender: facilitator === undefined ? exactProxyAddress : uptoProxyAddress,
    ...(facilitator !== undefined && { facilitator }),
  }));

const settleCall: fc.Arbitrary<SettleCall> = fc
  .tuple(permit, signature, address, fc.option(uint256, { nil: undefined }))
  .map(([permit, signature, recipient, amount]) => ({
    payment: permitPayment({ permit, signature }),
    ...{ recipient, amount: permit.facilitator === undefined ? undefined : amount },
  }));

/** As the ABI of the contract names it. */
function paymentArgument(call: SettleCall) {
  const { from: payer, amount: permitted, nonce, deadline, validAfter } = permitOf(call.payment);
  const { signature } = call.payment;
  return {
    payer,
    permitted,
    nonce,
    deadline,
    validAfter,
    amount: amountOf(call),
    approval: "0x",
    signature,
  } as const;
}

function groupArgument(calls: readonly [SettleCall, ...SettleCall[]]) {
  const [{ payment, recipient }] = calls;
  return {
    ...{ token: payment.asset, recipient, payments: calls.map(paymentArgument) },
    upto: permitOf(payment).facilitator !== undefined,
    direct: payment.payTo !== contract,
  };
}

test("settlePermit2 is encoded as viem encodes it", () => {
  fc.assert(
    fc.property(settleCall, (call) => {
      const args = [groupArgument([call])] as const;
      expect(encodeSettle(call, network)).toBe(
        encodeFunctionData({ abi: x402FacilitatorAbi, functionName: "settlePermit2", args }),
      );
    }),
  );
});

test("settlePermit2Batch is encoded as viem encodes it, with one group for what has all in common", () => {
  fc.assert(
    fc.property(settleCall, settleCall, settleCall, (one, two, three) => {
      const like = (call: SettleCall, model: SettleCall): SettleCall => ({
        ...call,
        recipient: model.recipient,
        payment: { ...model.payment, nonce: call.payment.nonce, payer: call.payment.payer },
        amount: model.amount,
      });
      const [second, other] = [like(two, one), { ...three, recipient: one.payment.payer }];
      const groups = [groupArgument([one, second]), groupArgument([other])];
      const data = encodeSettleBatch([one, other, second], network);
      expect(data).toBe(
        encodeFunctionData({ abi: x402FacilitatorAbi, functionName: "settlePermit2Batch", args: [groups] }),
      );
      expect(settlesSeveral(data)).toBe(true);
      expect(settlesSeveral(encodeSettle(one, network))).toBe(false);
    }),
  );
});

test("forwardReceivedWithPermit2 is encoded as viem encodes it", () => {
  fc.assert(
    fc.property(settleCall, (call) => {
      const args = [call.payment.asset, paymentArgument(call), call.recipient] as const;
      expect(encodeForward(call)).toBe(
        encodeFunctionData({ abi: x402FacilitatorAbi, functionName: "forwardReceivedWithPermit2", args }),
      );
    }),
  );
});

/** The calls of the proxies, as viem encodes them. */
function proxyCall(
  { from, token, amount, nonce, deadline, to, facilitator, validAfter }: Permit,
  signature: Hex,
  taken: bigint,
) {
  const signed = { permitted: { token, amount }, nonce, deadline };
  return facilitator === undefined
    ? encodeFunctionData({
        ...{ abi: mockExactPermit2ProxyAbi, functionName: "settle" },
        args: [signed, from, { to, validAfter }, signature],
      })
    : encodeFunctionData({
        ...{ abi: mockUptoPermit2ProxyAbi, functionName: "settle" },
        args: [signed, taken, from, { to, facilitator, validAfter }, signature],
      });
}

test("the proxies' settle is encoded as viem encodes it", () => {
  fc.assert(
    fc.property(permit, signature, uint256, (permit, signature, taken) => {
      expect(encodeProxySettle(permit, signature, taken)).toBe(proxyCall(permit, signature, taken));
    }),
  );
});

test.each([
  [
    "exact",
    { amount: 10_000n, spender: exactProxyAddress },
    ...[388, "0x750f6c182d33d61a57c8f440af048543ac747c4623134612ccacb57cb2c505df"],
    "0x3786aca99c1c6b5fb899a8981bb38989f17b6f858ca3a64538578f06d5e7a3d743b4646fc4068d368ac9c6d03c4f41bc06098f25d559c7178be11adb1ccc749b1b",
  ],
  [
    "upto",
    {
      ...{ amount: 20_000n, spender: uptoProxyAddress },
      facilitator: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
    },
    ...[452, "0x8995277d2a692293a90840c1053d7a58f4d01813ab74636a611f5ed2ab955031"],
    "0x4fde5bb0541acc4d260147535719f380eeb40bb0b34caf30e81454cb80f313d664a9fbfc1951665aa9d6dce2d49d453f24756c99929889f9372049a1b81be10e1b",
  ],
] as const)(
  "the calldata of the public example of scheme %s is theirs",
  (_scheme, signed, size, hash, signature) => {
    const data = encodeProxySettle(
      {
        from: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        token: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
        to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
        nonce: 33247007178036348590600198031289925668252061821958005840077069883511451257277n,
        ...{ deadline: 1740672154n, validAfter: 1740672089n, ...signed },
      },
      signature,
      1_858n,
    );
    expect((data.length - 2) / 2).toBe(size);
    expect(keccak256(data)).toBe(hash);
  },
);

test("a transaction submits a payment if it calls the proxy with just that", () => {
  const withPermit = parseAbi([
    "struct Permit2612 { uint256 value; uint256 deadline; bytes32 r; bytes32 s; uint8 v; }",
    "struct Permitted { address token; uint256 amount; }",
    "struct Permit { Permitted permitted; uint256 nonce; uint256 deadline; }",
    "struct Witness { address to; uint256 validAfter; }",
    "function settleWithPermit(Permit2612 permit2612, Permit permit, address owner, Witness witness, bytes signature)",
  ]);
  const exact = permit.map(({ facilitator: _, ...rest }) => ({ ...rest, spender: exactProxyAddress }));
  fc.assert(
    fc.property(exact, signature, (permit, signature) => {
      const input = encodeProxySettle(permit, signature, 0n);
      const { from, token, amount, nonce, deadline, to, validAfter } = permit;
      const word: Hex = `0x${"12".repeat(32)}`;
      const sponsored = encodeFunctionData({
        ...{ abi: withPermit, functionName: "settleWithPermit" },
        args: [
          { value: amount, deadline, r: word, s: word, v: 27 },
          { permitted: { token, amount }, nonce, deadline },
          ...([from, { to, validAfter }, signature] as const),
        ],
      });
      for (const data of [input, sponsored, input.toUpperCase().replace("0X", "0x")]) {
        expect(submitsPayment({ to: exactProxyAddress, input: data }, permit)).toBe(true);
        expect(submitsPayment({ to: exactProxyAddress.toLowerCase(), input: data }, permit)).toBe(true);
        expect(submitsPayment({ to: uptoProxyAddress, input: data }, permit)).toBe(false);
        for (const other of [{ nonce: nonce ^ 1n }, { amount: amount ^ 1n }, { to: uptoProxyAddress }]) {
          expect(submitsPayment({ to: exactProxyAddress, input: data }, { ...permit, ...other })).toBe(false);
        }
      }
      const inside = `0x${"00".repeat(4)}${input.slice(2)}`;
      expect(submitsPayment({ to: exactProxyAddress, input: inside }, permit)).toBe(false);
      expect(submitsPayment({ to: exactProxyAddress, input: input.slice(0, 200) }, permit)).toBe(false);
    }),
  );
});

/* The selectors are those of the contracts that stand on public chains. */

const errorOf = (data: Hex) => permit2ErrorOf({ kind: "unknown", data });
const word = "1".padStart(64, "0");

test.each([
  ["0x050cda49", "Permit2612AmountMismatch()"],
  ["0x49e27cff", "InvalidOwner()"],
  ["0xac6b05f5", "InvalidDestination()"],
  ["0xa65539fa", "PaymentTooEarly()"],
  ["0x2c5211c6", "InvalidAmount()"],
  ["0x59106c89", "InvalidPermit2Address()"],
  ["0x3ee5aeb5", "ReentrancyGuardReentrantCall()"],
  ["0xfe64b4c7", "AmountExceedsPermitted()"],
  ["0x0f6fae87", "UnauthorizedFacilitator()"],
  ["0x756688fe", "InvalidNonce()"],
  ["0x815e1d64", "InvalidSigner()"],
  ["0x8baa579f", "InvalidSignature()"],
  ["0x4be6321b", "InvalidSignatureLength()"],
  ["0xb0669cbc", "InvalidContractSignature()"],
] as const)("%s is %s, with nothing behind it", (selector, error) => {
  expect(errorOf(selector)).toBe(error);
  expect(errorOf(`${selector}${word}`)).toBeUndefined();
  expect(describePermit2Revert(selector)).toBe(error.slice(0, -2));
});

test("Permit2 and the proxies each have an InvalidAmount, told apart by what is behind it", () => {
  const ofPermit2 = `0x3728b83d${word}` as const;
  expect([errorOf("0x2c5211c6"), errorOf(ofPermit2)]).toEqual(["InvalidAmount()", "InvalidAmount(uint256)"]);
  expect(errorOf("0x3728b83d")).toBeUndefined();
  expect(describePermit2Revert(ofPermit2)).toBe("InvalidAmount 1");
});

test("an expired permit says when, and what is none of these says nothing of them", () => {
  expect(describePermit2Revert(`0xcd21db4f${word}`)).toBe("SignatureExpired 1");
  expect(errorOf("0xdeadbeef")).toBeUndefined();
  expect(errorOf("0x")).toBeUndefined();
  expect(permit2ErrorOf({ kind: "error", message: "TRANSFER_FROM_FAILED" })).toBeUndefined();
});
