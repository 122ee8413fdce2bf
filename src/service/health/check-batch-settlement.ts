import { callViews, codeOf, readViews, selector, viewGas } from "../../chain/views.ts";
import { deposit } from "../../methods/batch-settlement/batch-settlement-methods.ts";
import {
  batchSettlementAddress,
  erc3009CollectorAddress,
  multicall3Address,
  permit2CollectorAddress,
} from "../../methods/batch-settlement/contracts.ts";
import { addressWord, byteWords, type Hex, sameAddress, uintWord } from "../../protocol/hex.ts";
import { type Check, type NetworkCheck, ok, warning } from "./check.ts";

const name = "escrow";

/**
 * Settles for a receiver and token that are owed nothing: it succeeds without effect, but still uses the reentrancy
 * guard in transient storage.
 */
const settleNothing: Hex = `${selector("settle(address,address)")}${uintWord(0n)}${uintWord(0n)}`;
/** The same through the escrow's multicall, which returns data: without data, a call proves nothing. */
const settleNothingInMulticall: Hex = `${selector("multicall(bytes[])")}${uintWord(32n)}${uintWord(1n)}${uintWord(32n)}${byteWords(settleNothing)}`;

const collectors = [erc3009CollectorAddress, permit2CollectorAddress];

/**
 * Checks that the contracts of scheme “batch-settlement” exist at their public addresses, and runs the escrow, which
 * needs Cancun (transient storage). Multicall3 is needed if wallets may be deployed with their deposits. Reports at
 * most a note if the network does not offer the scheme; other payments need none of these.
 */
export const batchSettlementCheck: NetworkCheck = {
  name,
  required: false,
  calls: () => [
    callViews(
      [
        { target: batchSettlementAddress, data: settleNothingInMulticall, changes: true },
        ...collectors.map((target) => ({ target, data: selector("x402BatchSettlement()") })),
        codeOf(multicall3Address),
      ],
      viewGas,
    ),
  ],
  read([answer], { network }) {
    const isOffered = deposit.extra(network) !== undefined;
    const missing = (detail: string, consequence: string): Check =>
      isOffered
        ? warning(name, `${detail}: ${consequence}`, advice)
        : ok(name, `${detail}; nothing here needs scheme batch-settlement`);
    const noDeposit = "batch-settlement deposits cannot settle";
    const { results } = readViews(answer?.result, 2 + collectors.length) ?? {};
    if (results === undefined) return [missing("could not be looked at", "deposits may not settle")];
    const [escrow, ...ofOthers] = results;
    if (escrow?.word === undefined) {
      const found = escrow?.codeHash == null ? "there is none of x402" : "the chain does not run the code";
      return [missing(`${found} at ${batchSettlementAddress}`, noDeposit)];
    }
    const bad = collectors.filter((_, index) => {
      const word = ofOthers[index]?.word;
      return word === undefined || !sameAddress(word, `0x${addressWord(batchSettlementAddress)}`);
    });
    if (bad.length > 0) return [missing(`there is no collector of x402 at ${bad.join(" and ")}`, noDeposit)];
    const deploysWallets = isOffered && (network.walletFactories ?? []).length > 0;
    if (deploysWallets && ofOthers.at(-1)?.codeHash == null) {
      const consequence = "deposits that deploy their payer's wallet cannot settle";
      return [missing(`there is no Multicall3 at ${multicall3Address}`, consequence)];
    }
    return [ok(name, `${batchSettlementAddress} is there and runs, and both collectors of x402 use it`)];
  },
};

const advice = "Have it deployed there, which anybody can (by CREATE2). Payments of other schemes go on.";
