import { expect, test } from "vitest";
import { appendCodes } from "../../protocol/builder-code.ts";
import { paymentOf } from "../exact-eip3009/eip3009-method.ts";
import {
  encodeForwardReceived,
  encodeSettle,
  encodeSettleBatch,
  encodeTransfer,
  encodeTransferBatch,
} from "../exact-eip3009/on-chain/eip3009-transaction.ts";
import {
  encodeSettleBatch as encodePermitBatch,
  encodeForward as encodePermitForward,
  encodeSettle as encodePermitSettle,
} from "../permit2/on-chain/permit2-calls.ts";
import { type Permit, uptoProxyAddress } from "../permit2/permit.ts";
import { permitPayment } from "../permit2/permit2-payload.ts";
import { decodeCall } from "./decode-call.ts";
import type { SettleCall } from "./settling.ts";

const [asset, payer, contract, recipient] = [1, 2, 3, 4].map(
  (digit): `0x${string}` => `0x${`${digit}`.repeat(40)}`,
) as [`0x${string}`, `0x${string}`, `0x${string}`, `0x${string}`];
const nonce = `0x${"5".repeat(64)}` as const;
const signature = `0x${"67".repeat(65)}` as const;
const call: SettleCall = {
  payment: paymentOf(asset, {
    authorization: { from: payer, to: contract, value: 7n, validAfter: 1n, validBefore: 9n, nonce },
    signature,
  }),
  ...{ recipient, id: nonce },
};
const payment = {
  ...{ payer, recipient, value: "7", authorizationNonce: nonce },
  ...{ validAfter: "1", validBefore: "9" },
};

test("each call that moves payments is told with them and without their signatures", () => {
  expect(decodeCall(contract, encodeSettle(call))).toEqual({ name: "settle", asset, payments: [payment] });
  const batch = decodeCall(contract, encodeSettleBatch(asset, [call, { ...call, recipient: payer }]));
  expect(batch).toEqual({
    name: "settleBatch",
    asset,
    payments: [payment, { ...payment, recipient: payer }],
  });
  expect(decodeCall(contract, encodeForwardReceived(call))).toEqual({
    ...{ name: "forwardReceived", asset },
    payments: [payment],
  });
  const straight = { ...payment, recipient: contract };
  const single = decodeCall(asset, encodeTransfer(call.payment));
  expect(single).toEqual({ name: "transferWithAuthorization", asset, payments: [straight] });
  const together = encodeTransferBatch(asset, [{ ...call, recipient: contract }]);
  expect(decodeCall(contract, together)).toEqual({ name: "transferBatch", asset, payments: [straight] });
  expect(JSON.stringify([batch, single])).not.toContain("6767");
});

test("builder codes behind the calldata are shown, and change nothing of the payments", () => {
  const codes = { app: "shop", wallet: "facilitator", services: ["client"] };
  expect(decodeCall(contract, appendCodes(encodeSettleBatch(asset, [call]), codes))).toEqual({
    ...decodeCall(contract, encodeSettleBatch(asset, [call])),
    codes,
  });
});

test("so are payments by Permit2, with the nonce that the ledger has and the amount that is taken", () => {
  const permit: Permit = {
    ...{ from: payer, token: asset, amount: 9n, nonce: 5n, deadline: 11n, to: contract, validAfter: 1n },
    ...{ spender: uptoProxyAddress, facilitator: contract },
  };
  const signed = { payment: permitPayment({ permit, signature }), recipient, amount: 4n };
  const network = { facilitatorContract: contract };
  const taken = {
    ...{ payer, recipient, value: "4", authorizationNonce: `0x${"5".padStart(64, "0")}` },
    ...{ validAfter: "1", validBefore: "11" },
  };
  const single = decodeCall(contract, encodePermitSettle(signed, network));
  expect(single).toEqual({ name: "settlePermit2", asset, payments: [taken] });
  const batch = encodePermitBatch([signed, { ...signed, recipient: payer }], network);
  expect(decodeCall(contract, batch)).toEqual({
    ...{ name: "settlePermit2Batch", asset },
    payments: [taken, { ...taken, recipient: payer }],
  });
  expect(decodeCall(contract, encodePermitForward(signed))).toEqual({
    ...{ name: "forwardReceivedWithPermit2", asset },
    payments: [{ ...taken, value: "9" }],
  });
  expect(JSON.stringify([single])).not.toContain("6767");
});

test.each(["0x", "0x12345678", `${encodeSettle(call).slice(0, 100)}`] as const)(
  "other calldata is no such call: %s",
  (data) => expect(decodeCall(contract, data as `0x${string}`)).toBeNull(),
);
