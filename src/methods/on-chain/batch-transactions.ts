import type { Transaction } from "../../chain/chain.ts";
import { calldataGas, gasPerByte } from "../../chain/fees.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { appendCodes, mergeCodes } from "../../protocol/builder-code.ts";
import { type Address, type Hex, uintWord } from "../../protocol/hex.ts";
import type { BatchLimits, SettleCall } from "./settling.ts";

/** The network settings that encoding needs. */
export type Contract = Pick<NetworkConfig, "facilitatorContract">;

/** How to settle payments that may share a transaction. Gas excludes calldata. */
export type Route = {
  /** The call for a single payment, and its gas limit. */
  alone(call: SettleCall, network: Contract): Omit<Transaction, "gas">;
  aloneGas: bigint;
  /** The call to the facilitator contract for several payments, with the base gas limit and the gas limit of each payment. */
  batch: {
    encode(asset: Address, calls: readonly SettleCall[], network: Contract): Hex;
    gas: bigint;
    paymentGas(call: SettleCall): bigint;
  };
};

/** The maximum gas limit of a transaction (EIP-7825). */
const transactionGasCap = 2n ** 24n;

/** The maximum calldata of a transaction, in bytes: nodes reject transactions of more than 128 KiB. */
const mostCalldata = 64 * 1024;

/** The bytes that a payment adds to a batch besides its own calldata: its group and its offset. */
const batchPaymentBytes = 4 * 32;

/** Creates the transaction functions of a payment method. All payments of a batch must have the same route. */
export function createTransactions(routeOf: (call: SettleCall, network: Contract) => Route) {
  const settledAlone = new WeakMap<SettleCall, Transaction>();

  /** Cached for each payment, because it is simulated, priced and counted with it. */
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
     * {@link Settling.count}: limited by number, calldata, gas and cost. The gas here is not capped at the maximum of a
     * transaction.
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

/** The ABI word for an offset in hex digits. */
export const offset = (digits: number) => uintWord(BigInt(digits / 2));

/** ABI-encodes an array of dynamic elements: the length, the offset of each element (from after the length), the elements. */
export function encodeArray(elements: readonly string[]): string {
  let position = elements.length * wordDigits;
  let offsets = "";
  for (const element of elements) {
    offsets += offset(position);
    position += element.length;
  }
  return `${uintWord(BigInt(elements.length))}${offsets}${elements.join("")}`;
}
