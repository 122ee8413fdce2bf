import { UndeterminedError } from "../../util/errors.ts";
import { describeError } from "../rpc/json-rpc.ts";
import type { RpcAnswer } from "../rpc/rpc.ts";

/**
 * Reads a node's answer with a reader that gives undefined for what it cannot read.
 *
 * @throws UndeterminedError when the node refused, or answered something else
 */
export function expectAnswer<T>(
  what: string,
  answer: RpcAnswer | undefined,
  read: (result: unknown) => T | undefined,
): T {
  if (answer?.error !== undefined) {
    throw new UndeterminedError(`The RPC did not give ${what}: ${describeError(answer.error)}`);
  }
  const value = read(answer?.result);
  if (value === undefined) throw new UndeterminedError(`The RPC gave no usable answer to ${what}`);
  return value;
}
