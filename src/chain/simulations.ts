import type { NetworkConfig } from "../config/serve-config.ts";
import { type Address, type Hex, isBytes, quantity, readQuantity } from "../protocol/hex.ts";
import { expiryMarginSeconds } from "../protocol/refusals.ts";
import { UndeterminedError } from "../util/errors.ts";
import { membersOf } from "../util/json.ts";
import type { Chain, Simulation, Transaction } from "./chain.ts";
import { askViews, type ChainReader, expectWord } from "./chain-reader.ts";
import { readTip, smaller, tipCall } from "./fees.ts";
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

  /** Runs both in one block, a little after the newest, since a time is wanted that no block has yet. */
  async function seriesOf(
    before: Transaction & { from: Address },
    transaction: Transaction,
  ): Promise<RpcCall> {
    const [block] = await ask([headCall]);
    const { timestamp } = expect("the newest block", block, readHead);
    const calls = [before, { ...transaction, from: operator }].map(({ from, to, data, gas }) => ({
      ...{ from, to, data, gas: quantity(gas) },
    }));
    const blockOverrides = { time: quantity(timestamp + expiryMarginSeconds) };
    return { method: "eth_simulateV1", params: [{ blockStateCalls: [{ blockOverrides, calls }] }, "latest"] };
  }

  async function simulateFrom(
    from: Address,
    transaction: Transaction,
    id?: Hex,
  ): Promise<Revert | undefined> {
    const [simulation] = await ask([{ ...callOf(from, transaction), about: id }]);
    return readSimulation("simulating a transaction", simulation);
  }

  /** The words of what would not have its effect; nothing where it has none, as when all of its gas is used up. */
  async function whyWithoutEffect(transaction: Transaction, id: Hex | undefined): Promise<Revert> {
    const silence: Revert = { kind: "unknown", data: "0x" };
    try {
      return (await simulateFrom(operator, transaction, id)) ?? silence;
    } catch (error) {
      // That it has no effect is certain all the same.
      if (error instanceof UndeterminedError) return silence;
      throw error;
    }
  }

  return {
    async simulate(
      transaction,
      { payer, asset, withFunds, bounds = [], withPayerCode = withFunds, effect, before, id },
    ) {
      const simulate = () =>
        before === undefined ? callOf(operator, transaction) : seriesOf(before, transaction);
      const read = bounds.filter((bound) => typeof bound !== "bigint");
      const ofPayer = withPayerCode ? [codeOf(payer), balanceOf(asset, payer), ...read] : [];
      const views = [...ofPayer, ...(effect?.views ?? [])];
      // What is not asked for has no place among the answers.
      const [simulation, viewed, ...gasMoney] = [
        effect === undefined ? { ...(await simulate()), about: id } : undefined,
        views.length > 0 ? { ...callViews(views, viewGas), about: id } : undefined,
        ...(withFunds ? [gasMoneyCall, tipCall] : []),
      ];
      const calls = [headCall, simulation, viewed, ...gasMoney].filter((call) => call !== undefined);
      // Not every node knows how to simulate several.
      const optional = [tipCall, before && simulation].filter((call) => call !== undefined);
      const answers = await ask(calls, { optional });
      const answerTo = (call: RpcCall | undefined) =>
        call === undefined ? undefined : answers[calls.indexOf(call)];
      const head = expect("the newest block", answerTo(headCall), readHead);
      const { blockNumber, results } =
        viewed === undefined
          ? { blockNumber: head.number, results: [] }
          : expect("the payer and the effect", answerTo(viewed), (result) => readViews(result, views.length));
      const [code, balance, ...bounded] = results.slice(0, ofPayer.length);
      const payerCode = withPayerCode ? code?.codeHash : undefined;
      const outcome = { payerCode, ...(await readOutcome()) };
      // What is no token has no balance to read either.
      const isReverted = outcome.revert !== undefined || typeof outcome.before === "object";
      if (!withFunds || isReverted) return { head, funds: undefined, ...outcome };
      return {
        // The calls of a batch may see different blocks, and those behind a balancer different nodes.
        head: blockNumber < head.number ? { ...head, number: blockNumber } : head,
        funds: {
          payer: [
            BigInt(expectWord(reader, "balanceOf of the asset", balance)),
            ...bounded.map((bound) =>
              BigInt(expectWord(reader, "what the payer can pay of the asset", bound)),
            ),
            ...bounds.filter((bound) => typeof bound === "bigint"),
          ].reduce((least, most) => smaller(least, most)),
          operator: expect("the operator's balance", answerTo(gasMoneyCall), readQuantity),
          tip: readTip(answerTo(tipCall), network),
        },
        ...outcome,
      };

      async function readOutcome(): Promise<Pick<Simulation, "revert" | "before">> {
        if (effect !== undefined) {
          const isThere = effect.isThere(results.slice(ofPayer.length));
          return { revert: isThere ? undefined : await whyWithoutEffect(transaction, id) };
        }
        if (before !== undefined) return readSeries(answerTo(simulation));
        return { revert: readSimulation("simulating settle", answerTo(simulation)) };
      }
    },

    simulateFrom,

    async askWallet(payer, digest, signature, id) {
      const data = encodeIsValidSignature(digest, signature);
      const [wallet] = await askViews(reader, [{ target: payer, data }], walletGas, id);
      if (wallet?.codeHash == null) return "no_code";
      return wallet.word === walletYes ? "accepted" : "refused";
    },
  };
}

/** What came of two transactions, one after the other (`eth_simulateV1`). */
function readSeries(answer: RpcAnswer | undefined): Pick<Simulation, "revert" | "before"> {
  const [block] = Array.isArray(answer?.result) ? answer.result : [];
  const { calls } = membersOf(block);
  const [first, second] = (Array.isArray(calls) ? calls : []).map(readCall);
  if (first === undefined || second === undefined) return { revert: undefined, before: "unknown" };
  if (first !== "succeeded") return { revert: undefined, before: first };
  return { revert: second === "succeeded" ? undefined : second };
}

function readCall(call: unknown): Revert | "succeeded" | undefined {
  const { status, returnData } = membersOf(call);
  if (status === "0x1") return "succeeded";
  return status === "0x0" && isBytes(returnData) ? decodeRevert(returnData) : undefined;
}

function callOf(from: Address, { to, data, gas }: Transaction): RpcCall {
  return { method: "eth_call", params: [{ from, to, data, gas: quantity(gas) }, "latest"] };
}
