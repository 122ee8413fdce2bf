import {
  encodeAbiParameters,
  encodeFunctionData,
  multicall3Abi,
  parseAbiParameters,
  toFunctionSelector,
} from "viem";
import { expect, test } from "vitest";
import { mockBatchSettlementAbi as abi } from "../../../contracts/mockBatchSettlement.ts";
import {
  encodeCalls,
  encodeClaim,
  encodeClaimWithSignature,
  encodeDeposit,
  encodeErc3009Data,
  encodeInitiateWithdraw,
  encodeMulticall,
  encodePermit2Data,
  encodeRefund,
  encodeSettleOwed,
} from "./channel-calls.ts";
import { channelErrorOf } from "./channel-errors.ts";

const account = (digit: string) => `0x${digit.repeat(40)}` as const;
const bytes32 = (digit: string) => `0x${digit.repeat(64)}` as const;
const channel = {
  payer: account("1"),
  payerAuthorizer: account("2"),
  receiver: account("3"),
  receiverAuthorizer: account("4"),
  token: account("5"),
  withdrawDelay: 900,
  salt: bytes32("6"),
} as const;
const signature = `0x${"ab".repeat(65)}` as const;
const row = { channel, maxClaimableAmount: 9n, signature, totalClaimed: 7n } as const;
const other = { ...row, channel: { ...channel, salt: bytes32("7") }, signature: "0xcd" } as const;
const claims = [row, other].map(({ maxClaimableAmount, signature, totalClaimed, ...rest }) => ({
  voucher: { channel: rest.channel, maxClaimableAmount },
  signature,
  totalClaimed,
}));

test("calldata is what viem makes of the ABI", () => {
  expect(encodeDeposit(channel, { amount: 5n, collector: account("8"), data: "0xabcdef" })).toBe(
    encodeFunctionData({ abi, functionName: "deposit", args: [channel, 5n, account("8"), "0xabcdef"] }),
  );
  expect(encodeClaim([row, other])).toBe(encodeFunctionData({ abi, functionName: "claim", args: [claims] }));
  expect(encodeClaimWithSignature([row, other], signature)).toBe(
    encodeFunctionData({ abi, functionName: "claimWithSignature", args: [claims, signature] }),
  );
  expect(encodeSettleOwed(account("3"), account("5"))).toBe(
    encodeFunctionData({ abi, functionName: "settle", args: [account("3"), account("5")] }),
  );
  const refund = encodeFunctionData({
    ...{ abi, functionName: "refundWithSignature" },
    args: [channel, 4n, 1n, signature],
  });
  expect(encodeRefund(channel, { amount: 4n, nonce: 1n, signature })).toBe(refund);
  expect(encodeInitiateWithdraw(channel, 5n)).toBe(
    encodeFunctionData({ abi, functionName: "initiateWithdraw", args: [channel, 5n] }),
  );
  expect(encodeMulticall([refund, "0x12"])).toBe(
    encodeFunctionData({ abi, functionName: "multicall", args: [[refund, "0x12"]] }),
  );
});

test("so is what deploys a wallet before its deposit", () => {
  const calls = [
    { target: account("1"), allowFailure: true, callData: "0xabcdef" },
    { target: account("2"), allowFailure: false, callData: `0x${"12".repeat(40)}` },
  ] as const;
  expect(
    encodeCalls(
      calls.map(({ target: to, allowFailure: mayFail, callData: data }) => ({ to, mayFail, data })),
    ),
  ).toBe(encodeFunctionData({ abi: multicall3Abi, functionName: "aggregate3", args: [calls] }));
});

test("so is what the collectors take", () => {
  expect(encodeErc3009Data({ validAfter: 1n, validBefore: 2n, salt: bytes32("9") }, signature)).toBe(
    encodeAbiParameters(parseAbiParameters("uint256, uint256, uint256, bytes"), [
      1n,
      2n,
      BigInt(bytes32("9")),
      signature,
    ]),
  );
  expect(encodePermit2Data({ nonce: bytes32("9"), deadline: 2n }, signature)).toBe(
    encodeAbiParameters(parseAbiParameters("uint256, uint256, bytes, bytes"), [
      BigInt(bytes32("9")),
      2n,
      signature,
      "0x",
    ]),
  );
  const approval = {
    amount: 7n,
    deadline: 8n,
    signature: `0x${"0a".repeat(32)}${"0b".repeat(32)}1b`,
  } as const;
  const { from, asset, spender } = { from: account("1"), asset: account("5"), spender: account("9") };
  const brought = { ...approval, from, asset, spender, nonce: 0n };
  expect(encodePermit2Data({ nonce: bytes32("9"), deadline: 2n }, signature, brought)).toBe(
    encodeAbiParameters(parseAbiParameters("uint256, uint256, bytes, bytes"), [
      BigInt(bytes32("9")),
      2n,
      signature,
      encodeAbiParameters(parseAbiParameters("uint256, uint256, uint8, bytes32, bytes32"), [
        7n,
        8n,
        27,
        `0x${"0a".repeat(32)}`,
        `0x${"0b".repeat(32)}`,
      ]),
    ]),
  );
});

test("the contract's errors have names", () => {
  const errors = (abi as readonly { type: string; name?: string; inputs?: readonly { type: string }[] }[])
    .filter(({ type }) => type === "error")
    .map(({ name = "", inputs = [] }) => [name, `${name}(${inputs.map(({ type }) => type).join(",")})`]);
  const unnamed = errors.filter(
    ([name, signature = ""]) => channelErrorOf(toFunctionSelector(signature))?.name !== name,
  );
  // That of a proxy without code.
  expect(unnamed.map(([name]) => name)).toEqual(["AddressEmptyCode"]);
});
