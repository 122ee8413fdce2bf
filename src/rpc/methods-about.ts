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
    for (const subject of subjectsOf(question)) {
      const known = methods.get(subject);
      const own = known ?? [];
      for (const { about, method } of question) {
        if (about === undefined || about === subject) own.push(method);
      }
      if (known === undefined) methods.set(subject, own);
    }
  }
  return methods;
}

/** Mostly one, which costs no set. */
function subjectsOf(question: readonly ObservedCall[]): Iterable<Hex> {
  let only: Hex | undefined;
  for (const { about } of question) {
    if (about === undefined || about === only) continue;
    if (only !== undefined) return new Set(question.flatMap((call) => call.about ?? []));
    only = about;
  }
  return only === undefined ? [] : [only];
}
