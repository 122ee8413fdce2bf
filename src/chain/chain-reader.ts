import { setTimeout as delay } from "node:timers/promises";
import type { Hex } from "../protocol/hex.ts";
import { UndeterminedError } from "../util/errors.ts";
import { readRevertData } from "./revert.ts";
import {
  describeError,
  type EndpointAnswer,
  type RpcAnswer,
  type RpcCall,
  type RpcReader,
} from "./rpc/rpc.ts";
import { callViews, readViews, type ViewCall, type ViewResult } from "./views.ts";

/** Asks a chain, and reads what comes back, for all that a {@link Chain} does. */
export type ChainReader = {
  /**
   * Reads, again where a node refuses a single call for another reason than a revert: a node that moves on to the
   * next block in the middle of a batch may say that it does not know the last one any more. `optional` are calls
   * that nodes need not know; `attempt` counts earlier answers to these calls that could not be used: from the
   * first on, other nodes are asked first.
   */
  ask(
    calls: readonly RpcCall[],
    options?: { optional?: readonly RpcCall[]; attempt?: number },
  ): Promise<readonly EndpointAnswer[]>;
  /**
   * Reads an answer with a reader that gives undefined for what it cannot read.
   *
   * @throws UndeterminedError when the answer is an error, or cannot be read.
   */
  expect<T>(what: string, answer: RpcAnswer | undefined, read: (result: unknown) => T | undefined): T;
  /** An error that says what a node did, to the operator alone. */
  undetermined(what: string): UndeterminedError;
};

/** How often calls are asked before a refusal of one of them is believed. */
const maxAsks = 6;

/** The pause before the second time, in milliseconds; it grows by as much each time. */
const askAgainMs = 3;

export function createChainReader(rpc: RpcReader, network: string): ChainReader {
  function undetermined(what: string): UndeterminedError {
    return new UndeterminedError(`${network} gave no usable answer; try again`, {
      cause: new Error(what),
      hints: [`An RPC endpoint of ${network}: ${what}`],
    });
  }

  return {
    undetermined,

    async ask(calls, { optional = [], attempt = 0 } = {}) {
      const isOptional = (call: RpcCall | undefined) => call !== undefined && optional.includes(call);
      // A refusal may be chance, so that the same node is asked once more; an answer of no use is none.
      const before = attempt === 0 ? 0 : attempt + 1;
      for (let refused = 0; ; refused++) {
        const answers = await rpc.ask(calls, before + refused);
        const isRefused = answers.some(
          ({ error }, index) =>
            error !== undefined && !isOptional(calls[index]) && readRevertData(error) === undefined,
        );
        if (!isRefused || refused + 1 === maxAsks) return answers;
        await delay((refused + 1) * askAgainMs);
      }
    },

    expect(what, answer, read) {
      if (answer?.error !== undefined) throw undetermined(`${what}: ${describeError(answer.error)}`);
      const value = read(answer?.result);
      if (value === undefined) throw undetermined(`${what}: the answer is malformed`);
      return value;
    },
  };
}

/** Calls view functions, each with at most `gasEach` gas, at one block. `about` is as in {@link RpcCall}. */
export async function askViews(
  { ask, expect }: ChainReader,
  views: readonly ViewCall[],
  gasEach: number,
  about: Hex | undefined,
): Promise<readonly ViewResult[]> {
  const [answer] = await ask([{ ...callViews(views, gasEach), about }]);
  return expect("eth_call", answer, (result) => readViews(result, views.length)).results;
}

/** @throws UndeterminedError when a view that every such contract has gave nothing. */
export function expectWord({ undetermined }: ChainReader, what: string, view: ViewResult | undefined): Hex {
  if (view?.word === undefined) throw undetermined(`${what}: no such contract, or it has no such function`);
  return view.word;
}
