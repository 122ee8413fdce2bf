import type { Hex } from "../../protocol/hex.ts";
import type { ObservedCall } from "./rpc-status.ts";

/**
 * The methods of an HTTP request by what they were asked for, see `RpcCall.about`: what a question asks for nothing by
 * itself, as the newest block, counts for all that the question is about. Most payments are asked for by the same
 * methods, and so share one list of them: observers keep it for each.
 */
export function methodsAbout(
  questions: readonly (readonly ObservedCall[])[],
): ReadonlyMap<Hex, readonly string[]> {
  const methods = new Map<Hex, readonly string[]>();
  /** Of the question before, to be shared. */
  let last: readonly string[] = [];
  for (const question of questions) {
    for (const subject of subjectsOf(question)) {
      const known = methods.get(subject);
      if (known === undefined && isAskedFor(subject, question, last)) methods.set(subject, last);
      else {
        last = [...(known ?? []), ...methodsFor(subject, question)];
        methods.set(subject, last);
      }
    }
  }
  return methods;
}

function methodsFor(subject: Hex, question: readonly ObservedCall[]): string[] {
  return question.flatMap(({ about, method }) => (about === undefined || about === subject ? method : []));
}

/** Whether the question asks for the subject by exactly these methods. */
function isAskedFor(subject: Hex, question: readonly ObservedCall[], methods: readonly string[]): boolean {
  let count = 0;
  for (const { about, method } of question) {
    if (about !== undefined && about !== subject) continue;
    if (methods[count++] !== method) return false;
  }
  return count === methods.length;
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
