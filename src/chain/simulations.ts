import type { NetworkConfig } from "../config/serve-config.ts";
import { type Address, isBytes, quantity, readQuantity } from "../protocol/hex.ts";
import type { Chain } from "./chain.ts";
import { askViews, type ChainReader, expectWord } from "./chain-reader.ts";
import { readTip, tipCall } from "./fees.ts";
import { decodeRevert, type Revert, readRevertData } from "./revert.ts";
import { headCall, readHead } from "./rpc/calls.ts";
import type { RpcAnswer, RpcCall } from "./rpc/rpc.ts";
import {
  balanceOf,
  callViews,
  codeOf,
  encodeIsValidSignature,
  isValidSignatureSelector,
  readViews,
  viewGas,
} from "./views.ts";

/** What a wallet answers to say yes: the selector that it was asked by (EIP-1271). */
const walletYes = `${isValidSignatureSelector}${"0".repeat(56)}`;

/** What the facilitator contract gives a token for a pull (PULL_GAS), and so a wallet at most for its check. */
const walletGas = 250_000;

/** Makes the part of {@link Chain} that asks what would happen. */
export function createSimulations(
  reader: ChainReader,
  { network, operator }: { network: NetworkConfig; operator: Address },
): Pick<Chain, "simulate" | "simulateFrom" | "askWallet"> {
  const { ask, expect } = reader;
  const gasMoneyCall: RpcCall = { method: "eth_getBalance", params: [operator, "latest"] };

  /** Why a simulated transaction reverted; undefined when it went through. */
  function readSimulation(what: string, answer: RpcAnswer | undefined): Revert | undefined {
    const revertData = answer?.error && readRevertData(answer.error);
    if (revertData !== undefined) return decodeRevert(revertData);
    expect(what, answer, (result) => (isBytes(result) ? result : undefined));
    return undefined;
  }

  return {
    async simulate({ to, data, gas }, { payer, asset, withFunds, withPayerCode = withFunds, id }) {
      const transaction = { from: operator, to, data, gas: quantity(gas) };
      const simulate: RpcCall = { method: "eth_call", params: [transaction, "latest"], about: id };
      const calls = [headCall, simulate];
      if (withPayerCode) {
        calls.push({ ...callViews([codeOf(payer), balanceOf(asset, payer)], viewGas), about: id });
      }
      if (withFunds) calls.push(gasMoneyCall, tipCall);
      const [block, simulation, ofPayer, operatorBalance, tip] = await ask(calls, {
        optional: tipCall,
      });
      const head = expect("the newest block", block, readHead);
      const revert = readSimulation("simulating settle", simulation);
      if (!withPayerCode) return { head, funds: undefined, payerCode: undefined, revert };

      const { blockNumber, results } = expect("the payer's code and balance", ofPayer, (result) =>
        readViews(result, 2),
      );
      const payerCode = results[0]?.codeHash;
      if (!withFunds) return { head, funds: undefined, payerCode, revert };
      return {
        // The calls of a batch may see different blocks, and those behind a balancer different nodes.
        head: blockNumber < head.number ? { ...head, number: blockNumber } : head,
        funds: {
          payer: BigInt(expectWord(reader, "balanceOf of the asset", results[1])),
          operator: expect("the operator's balance", operatorBalance, readQuantity),
          tip: readTip(tip, network),
        },
        payerCode,
        revert,
      };
    },

    async simulateFrom(from, { to, data, gas }, id) {
      const transaction = { from, to, data, gas: quantity(gas) };
      const [simulation] = await ask([{ method: "eth_call", params: [transaction, "latest"], about: id }]);
      return readSimulation("simulating a transaction", simulation);
    },

    async askWallet(payer, digest, signature, id) {
      const data = encodeIsValidSignature(digest, signature);
      const [wallet] = await askViews(reader, [{ target: payer, data }], walletGas, id);
      if (wallet?.codeHash == null) return "no_code";
      return wallet.word === walletYes ? "accepted" : "refused";
    },
  };
}
