import { callViews, readViews, selector, viewGas } from "../../chain/views.ts";
import {
  batchSettlementAddress,
  erc3009CollectorAddress,
  permit2CollectorAddress,
} from "../../methods/batch-settlement/contracts.ts";
import { addressWord, byteWords, type Hex, sameAddress, uintWord } from "../../protocol/hex.ts";
import { type NetworkCheck, ok } from "./check.ts";

const name = "escrow";

/** Settles what is owed to nobody: a success without effect, which takes the guard in transient storage all the same. */
const settleNothing: Hex = `${selector("settle(address,address)")}${uintWord(0n)}${uintWord(0n)}`;
/** The same through the escrow's multicall, which returns something: without that, a call proves nothing. */
const settleNothingInMulticall: Hex = `${selector("multicall(bytes[])")}${uintWord(32n)}${uintWord(1n)}${uintWord(32n)}${byteWords(settleNothing)}`;

const collectors = [erc3009CollectorAddress, permit2CollectorAddress];

/**
 * Looks for the contracts of scheme “batch-settlement” where public clients know them, and lets the escrow run, which needs the rules of
 * Cancun (transient storage). Only a note: this service does not settle the scheme, so that nothing depends on it.
 */
export const batchSettlementCheck: NetworkCheck = {
  name,
  required: false,
  calls: () => [
    callViews(
      [
        { target: batchSettlementAddress, data: settleNothingInMulticall, changes: true },
        ...collectors.map((target) => ({ target, data: selector("x402BatchSettlement()") })),
      ],
      viewGas,
    ),
  ],
  read([answer]) {
    const [escrow, ...ofCollectors] = readViews(answer?.result, 1 + collectors.length)?.results ?? [];
    const unneeded = "nothing here needs scheme batch-settlement";
    if (escrow === undefined) return [ok(name, `could not be looked at; ${unneeded}`)];
    if (escrow.word === undefined) {
      const found = escrow.codeHash === null ? "there is none of x402" : "the chain does not run the code";
      return [ok(name, `${found} at ${batchSettlementAddress}; ${unneeded}`)];
    }
    const bad = collectors.filter((_, index) => {
      const word = ofCollectors[index]?.word;
      return word === undefined || !sameAddress(word, `0x${addressWord(batchSettlementAddress)}`);
    });
    return bad.length === 0
      ? [ok(name, `${batchSettlementAddress} is there and runs, and both collectors of x402 use it`)]
      : [ok(name, `there is no collector of x402 at ${bad.join(" and ")}; ${unneeded}`)];
  },
};
