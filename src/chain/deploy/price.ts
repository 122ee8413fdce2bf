import type { NetworkConfig } from "../../config/network-config.ts";
import { dataFeeCall, readDataFee as parseDataFee } from "../data-fee.ts";
import { estimateFees, type Fees, pricePerGas, readTip, tipCall } from "../fees.ts";
import type { Head } from "../rpc/calls.ts";
import { headCall, readHead } from "../rpc/calls.ts";
import type { Rpc } from "../rpc/rpc.ts";
import { expectAnswer } from "./expect-answer.ts";

/** What gas costs on a network at the moment. */
export type GasPrice = {
  head: Head;
  /** What a transaction offers. */
  fees: Fees;
  /** What it pays as long as the base fee stays where it is, in wei per gas. */
  perGas: bigint;
};

/** The price of gas now, as the service pays it: with the tip that the node suggests. */
export async function readGasPrice(rpc: Pick<Rpc, "ask">, network: NetworkConfig): Promise<GasPrice> {
  const [block, tip] = await rpc.ask([headCall, tipCall]);
  const head = expectAnswer("the newest block", block, readHead);
  const fees = estimateFees(head, network, readTip(tip, network));
  return { head, fees, perGas: pricePerGas(head, fees) };
}

/**
 * What the rollup charges for the data of a transaction on top of its gas, in wei, at most; 0 where nothing is charged
 * for that, and on local chains.
 */
export async function fetchDataFee(rpc: Pick<Rpc, "ask">, calldataBytes: number): Promise<bigint> {
  const [answer] = await rpc.ask([dataFeeCall(calldataBytes)]);
  return expectAnswer("the data fee", answer, parseDataFee);
}
