import type { Hex } from "../protocol/hex.ts";
import type { ObservedCall } from "./rpc-status.ts";

/**
 * The methods of an HTTP request by what they were asked for, see `RpcCall.about`: what a question asks for nothing by
 * itself, as the newest block, counts for all that the question is about.
 */
export function methodsAbout(
  questions: readonly (readonly ObservedCall[])[],
): ReadonlyMap<Hex, readonly string[]> {
  const methods = new Map<Hex, string[]>();
  for (const question of questions) {
    const subjects = new Set(question.flatMap(({ about }) => about ?? []));
    for (const subject of subjects) {
      const own = question.filter(({ about }) => about === undefined || about === subject);
      methods.set(subject, [...(methods.get(subject) ?? []), ...own.map(({ method }) => method)]);
    }
  }
  return methods;
}
