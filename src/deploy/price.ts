import { selector } from "../chain/calldata.ts";
import type { Head } from "../chain/chain.ts";
import { headCall, readHead } from "../chain/head.ts";
import { probeCall, readProbes } from "../chain/probe.ts";
import type { Rpc, RpcCall } from "../chain/rpc.ts";
import { estimateFees, type Fees } from "../chain/transaction.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { type Address, uintWord } from "../protocol/hex.ts";
import { expectAnswer } from "./expect-answer.ts";

/** What gas costs on a network at the moment. */
export type GasPrice = {
  head: Head;
  /** What a transaction offers. */
  fees: Fees;
  /** What it pays as long as the base fee stays where it is, in wei per gas. */
  perGas: bigint;
};

/** Tells the fee for the data that base and optimism write to Ethereum. */
const gasPriceOracle: Address = "0x420000000000000000000000000000000000000F";
const l1FeeUpperBound = selector("getL1FeeUpperBound(uint256)");

/** What a signed transaction has besides its calldata, in bytes; more than enough. */
const envelopeBytes = 200;

/** The price of gas now, as the service pays it. */
export async function readGasPrice(rpc: Pick<Rpc, "ask">, network: NetworkConfig): Promise<GasPrice> {
  const [block] = await rpc.ask([headCall]);
  return priceAt(expectAnswer("the newest block", block, readHead), network);
}

export function priceAt(head: Head, network: NetworkConfig): GasPrice {
  const fees = estimateFees(head, network);
  const wanted = head.baseFeePerGas + fees.maxPriorityFeePerGas;
  const isCapped = wanted > fees.maxFeePerGas;
  return { head, fees, perGas: isCapped ? fees.maxFeePerGas : wanted };
}

/**
 * What the rollup charges for the data of a transaction on top of its gas, in wei, at most; 0 where nothing is charged
 * for that, and on local chains.
 */
export async function readDataFee(rpc: Pick<Rpc, "ask">, calldataBytes: number): Promise<bigint> {
  const size = BigInt(calldataBytes + envelopeBytes);
  const call: RpcCall = probeCall(
    [{ target: gasPriceOracle, data: `${l1FeeUpperBound}${uintWord(size)}` }],
    200_000,
  );
  const [answer] = await rpc.ask([call]);
  const probed = expectAnswer("the data fee", answer, (result) => readProbes(result, 1));
  return BigInt(probed.results[0]?.word ?? 0);
}
