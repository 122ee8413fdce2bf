import { type Address, uintWord } from "../protocol/hex.ts";
import type { RpcCall } from "./rpc/rpc.ts";
import { callViews, readViews } from "./view-calls.ts";
import { selector } from "./views.ts";

/*
 * What rollups charge for the data of a transaction on top of its gas: base and optimism write it to Ethereum.
 */

/** Tells that fee, where there is one. */
const gasPriceOracle: Address = "0x420000000000000000000000000000000000000F";
const l1FeeUpperBound = selector("getL1FeeUpperBound(uint256)");

/** A signed transaction without its calldata, in bytes; more than enough. */
const envelopeBytes = 200;

/** Asks for the data fee of a transaction. */
export function dataFeeCall(calldataBytes: number): RpcCall {
  const size = BigInt(calldataBytes + envelopeBytes);
  return callViews([{ target: gasPriceOracle, data: `${l1FeeUpperBound}${uintWord(size)}` }], 200_000);
}

/** Reads the answer: in wei, at most; 0 where nothing is charged for that, and on local chains. */
export function readDataFee(result: unknown): bigint | undefined {
  const views = readViews(result, 1);
  return views && BigInt(views.results[0]?.word ?? 0);
}
