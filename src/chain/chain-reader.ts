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

/** Sends the calls of a {@link Chain} and parses the results. */
export type ChainReader = {
  /**
   * Reads, and repeats the request if a node refuses a single call without a revert: a node that moves on to the next block
   * in the middle of a batch may say that it does not know the last one any more. `optional` calls may be unknown to a node.
   * `attempt` counts earlier answers to these calls that could not be used: from the first on, other nodes are asked first.
   */
  ask(
    calls: readonly RpcCall[],
    options?: { optional?: readonly RpcCall[]; attempt?: number },
  ): Promise<readonly EndpointAnswer[]>;
  /**
   * Parses an answer; `read` returns undefined if it cannot.
   *
   * @throws UndeterminedError when the answer is an error, or cannot be parsed.
   */
  expect<T>(what: string, answer: RpcAnswer | undefined, read: (result: unknown) => T | undefined): T;
  /** Creates an error that tells only the operator what a node did. */
  undetermined(what: string): UndeterminedError;
};

/** How often calls are sent before a refusal is accepted. */
const maxAsks = 6;

/** The pause before the second try, in milliseconds; it grows by the same amount each time. */
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
      // A refusal may be chance, so the same node is asked once more. An unusable answer is not, so another one is asked.
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

/** Calls view functions, each with at most `gasEach` gas, at one block. For `about`, see {@link RpcCall}. */
export async function askViews(
  { ask, expect }: ChainReader,
  views: readonly ViewCall[],
  gasEach: number,
  about: Hex | undefined,
): Promise<readonly ViewResult[]> {
  const [answer] = await ask([{ ...callViews(views, gasEach), about }]);
  return expect("eth_call", answer, (result) => readViews(result, views.length)).results;
}

/** @throws UndeterminedError when a view that every such contract has returned nothing. */
export function expectWord({ undetermined }: ChainReader, what: string, view: ViewResult | undefined): Hex {
  if (view?.word === undefined) throw undetermined(`${what}: no such contract, or it has no such function`);
  return view.word;
}
