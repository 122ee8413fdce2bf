import { expect, test } from "vitest";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { exactEip3009 } from "../exact-eip3009/eip3009-method.ts";
import { exactProxyAddress, type Permit, uptoProxyAddress } from "../permit2/permit.ts";
import { permitPayment } from "../permit2/permit2-payload.ts";
import type { SettleCall } from "./settling.ts";
import { waysToPay } from "./ways-to-pay.ts";

const address = (digit: string): Address => `0x${digit.repeat(40)}`;
const facilitatorContract = address("f");
const signature: Hex = `0x${"ab".repeat(64)}1b`;
// Of all that the transactions ask of a network.
const network = { facilitatorContract } as NetworkConfig;

const permit: Permit = {
  ...{ from: address("a"), token: address("b"), to: facilitatorContract, spender: exactProxyAddress },
  ...{ amount: 10_000n, nonce: 2n ** 256n - 1n, validAfter: 0n, deadline: 2n ** 40n },
};

const payments = {
  "exact-eip3009": {
    ...{ method: exactEip3009, payer: address("a"), payTo: facilitatorContract, asset: address("b") },
    ...{ limit: 10_000n, window: { first: 1n, last: 2n ** 40n }, nonce: `0x${"cd".repeat(32)}` as const },
    ...{ nonceSpace: address("b"), signature, payload: null },
  },
  "exact-permit2": permitPayment({ permit, signature }),
  "upto-permit2": permitPayment({
    permit: { ...permit, spender: uptoProxyAddress, facilitator: facilitatorContract },
    signature,
  }),
};

test.each(Object.entries(payments))(
  "what a payment by %s takes is what its transactions have",
  (method, payment) => {
    const { recovery, ...settling } = waysToPay.settlingOf(method);
    const call: SettleCall = { payment, recipient: address("c"), amount: payment.limit };
    const transactions = [
      { usual: settling.usual, ...settling.transaction([call], network) },
      ...(recovery === undefined ? [] : [{ usual: recovery.usual, ...recovery.transaction(call, network) }]),
    ];
    for (const { usual, data, gas } of transactions) {
      expect(data.length / 2 - 1).toBe(usual.bytes);
      // Zeros in the calldata cost less.
      expect(usual.gasLimit).toBeGreaterThanOrEqual(gas);
      expect(usual.gas).toBeLessThan(gas);
    }
  },
);
