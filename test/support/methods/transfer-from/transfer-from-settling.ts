import { calldataGas } from "../../../../src/chain/fees.ts";
import { selector } from "../../../../src/chain/views.ts";
import { decodeEvents } from "../../../../src/methods/on-chain/events.ts";
import type { SettleCall, Settling } from "../../../../src/methods/on-chain/settling.ts";
import { invalid } from "../../../../src/protocol/catalogue.ts";
import { type Address, addressWord, type Hex, sameAddress, uintWord } from "../../../../src/protocol/hex.ts";
import { name, spender } from "./transfer-from-method.ts";

/** The contract's code: it makes a call to the token from each 100 bytes of its calldata, and reverts if one of them fails. */
export const spenderCode = (token: Address) =>
  `0x60005b368110600a57005b606481600037600060006064600060007${`3${addressWord(token).slice(24)}`}5af1603a5760006000fd5b606401600256` as const;

/** The calls to the token that move these payments. */
function encode(calls: readonly SettleCall[]): Hex {
  const words = calls.map(
    ({ payment, recipient }) =>
      `${selector("transferFrom(address,address,uint256)").slice(2)}${addressWord(payment.payer)}${addressWord(recipient)}${uintWord(payment.limit)}`,
  );
  return `0x${words.join("")}`;
}

export const transferFromSettling: Settling = {
  method: name,
  localContracts: [{ address: spender, code: async (token) => spenderCode(token.address) }],
  plan: ({ network }, call) => ({ call, transaction: transferFromSettling.transaction([call], network) }),
  transaction(calls) {
    const data = encode(calls);
    return { to: spender, data, gas: 100_000n + BigInt(calls.length) * 100_000n + calldataGas(data) };
  },
  batchKey: ({ payment }) => payment.asset,
  count: (calls, _network, { maxPayments }) => Math.min(calls.length, maxPayments),
  settlesSeveral: (data) => data.length > 2 + 200,
  usual: { gas: 80_000n, gasLimit: 300_000n, bytes: 100 },
  prove(receipt) {
    const transfers = decodeEvents(receipt).filter((event) => event.name === "Transfer");
    return {
      find({ payment, recipient }) {
        const place = transfers.findIndex(
          ({ emitter, from, to, value }) =>
            sameAddress(emitter, payment.asset) &&
            sameAddress(from, payment.payer) &&
            sameAddress(to, recipient) &&
            value === payment.limit,
        );
        if (place === -1) return undefined;
        // One transfer proves one payment.
        transfers.splice(place, 1);
        return { settled: true };
      },
    };
  },
  findPayout: async () => null,
  stateOf: async () => ({ used: false }),
  explain: async () => invalid("balance_too_small", "The payer has not approved, or not got, so much"),
  isUsed: async () => false,
  receiver: (recipient) => recipient,
  submission: async (payment) => {
    return { to: spender, data: encode([{ payment, recipient: payment.payTo }]) };
  },
  cancellation: async ({ asset: to, payer: sender }) => {
    const data = `${selector("approve(address,uint256)")}${addressWord(spender)}${uintWord(0n)}` as const;
    return { to, data, sender };
  },
};
