import type { Transaction } from "../../chain/chain.ts";
import { calldataGas, gasPerByte } from "../../chain/fees.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { appendCodes, mergeCodes } from "../../protocol/builder-code.ts";
import { type Address, type Hex, uintWord } from "../../protocol/hex.ts";
import type { BatchLimits, SettleCall } from "./settling.ts";

/** The facts about a network. */
export type Contract = Pick<NetworkConfig, "facilitatorContract">;

/** How payments are settled that may share a transaction. Gas is without that of calldata. */
export type Route = {
  /** The call for a single payment, and the gas that it may need. */
  alone(call: SettleCall, network: Contract): Omit<Transaction, "gas">;
  aloneGas: bigint;
  /** The same for several: of the facilitator contract, with gas for all of them together, and for each. */
  batch: {
    encode(asset: Address, calls: readonly SettleCall[], network: Contract): Hex;
    gas: bigint;
    paymentGas(call: SettleCall): bigint;
  };
};

/** The most that one transaction may ask for (EIP-7825). */
const transactionGasCap = 2n ** 24n;

/** The most calldata of one transaction, in bytes: nodes take no transaction of more than 128 KiB in all. */
const mostCalldata = 64 * 1024;

/** The bytes that a payment adds to a batch besides the calldata that settles it alone: its group and its position in it. */
const batchPaymentBytes = 4 * 32;

/** Makes the transactions of a payment method, by the route of each payment; those of a batch have the same. */
export function createTransactions(routeOf: (call: SettleCall, network: Contract) => Route) {
  const settledAlone = new WeakMap<SettleCall, Transaction>();

  /** Encoded once for each payment: it is simulated, priced and counted by it. */
  function settleAlone(call: SettleCall, network: Contract): Transaction {
    let known = settledAlone.get(call);
    if (known === undefined) {
      const { alone, aloneGas } = routeOf(call, network);
      const { to, data: bare } = alone(call, network);
      const data = appendCodes(bare, call.codes);
      known = { to, data, gas: aloneGas + calldataGas(data) };
      settledAlone.set(call, known);
    }
    return known;
  }

  return {
    /** {@link Settling.transaction} */
    transaction(calls: readonly SettleCall[], network: Contract): Transaction {
      const [first, ...others] = calls;
      if (first === undefined) throw new RangeError("a settle transaction needs at least one payment");
      if (others.length === 0) return settleAlone(first, network);
      const { batch } = routeOf(first, network);
      const codes = mergeCodes(calls.map((call) => call.codes));
      const data = appendCodes(batch.encode(first.payment.asset, calls, network), codes);
      const payments = calls.reduce((sum, call) => sum + batch.paymentGas(call), 0n);
      const gas = batch.gas + payments + calldataGas(data);
      return {
        to: network.facilitatorContract,
        data,
        gas: gas < transactionGasCap ? gas : transactionGasCap,
      };
    },

    /**
     * {@link Settling.count}: by number, by calldata, by the gas that they may need, which is not cut down to what a transaction
     * may ask for, and by cost.
     */
    count(calls: readonly SettleCall[], network: Contract, limits: BatchLimits): number {
      let bytes = 0;
      let gas = 0n;
      for (const [index, call] of calls.entries()) {
        const { batch, aloneGas } = routeOf(call, network);
        const alone = settleAlone(call, network);
        const isAlone = index === 0;
        bytes += alone.data.length / 2 + batchPaymentBytes;
        gas += isAlone ? batch.gas : 0n;
        gas += batch.paymentGas(call) + alone.gas - aloneGas + BigInt(batchPaymentBytes) * gasPerByte;
        const cost = (isAlone ? alone.gas : gas) * limits.maxFeePerGas;
        const fits = isAlone || (bytes <= mostCalldata && gas <= transactionGasCap);
        if (index >= limits.maxPayments || !fits || cost > limits.maxCost) return index;
      }
      return calls.length;
    },
  };
}

/** The digits of one ABI word. */
export const wordDigits = 64;

/** The offset of something, counted in digits so far, as the word that points to it. */
export const offset = (digits: number) => uintWord(BigInt(digits / 2));

/** An array of elements of varying length: how many, where each begins (counted from behind that), and they. */
export function encodeArray(elements: readonly string[]): string {
  let position = elements.length * wordDigits;
  let offsets = "";
  for (const element of elements) {
    offsets += offset(position);
    position += element.length;
  }
  return `${uintWord(BigInt(elements.length))}${offsets}${elements.join("")}`;
}
