import type { Answer, Call } from "./json-rpc-message.ts";

/** What a fault makes of one call. */
export type Interception = {
  /** The call as the node is to get it; nothing where it is answered without the node. */
  call?: Call;
  /** Makes the answer out of the node's. */
  answer(given: Answer): Answer;
};

/** Answers a call without asking the node. */
export function answerWith({ id }: Call, answer: { result: unknown } | { error: unknown }): Interception {
  return { answer: () => ({ jsonrpc: "2.0", id, ...answer }) };
}

/** Lets a call through, and changes its result. */
export function alterResult(call: Call, alter: (result: unknown) => unknown): Interception {
  return {
    call,
    answer: (given) => ("result" in given ? { ...given, result: alter(given.result) } : given),
  };
}
