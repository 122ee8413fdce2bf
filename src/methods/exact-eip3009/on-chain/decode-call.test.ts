import { expect, test } from "vitest";
import type { SettleCall } from "../../on-chain/settling.ts";
import { paymentOf } from "../payload.ts";
import {
  encodeForwardReceived,
  encodeSettle,
  encodeSettleBatch,
  encodeTransfer,
  encodeTransferBatch,
} from "./calldata.ts";
import { decodeCall } from "./decode-call.ts";

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

test.each(["0x", "0x12345678", `${encodeSettle(call).slice(0, 100)}`] as const)(
  "other calldata is no such call: %s",
  (data) => expect(decodeCall(contract, data as `0x${string}`)).toBeNull(),
);
