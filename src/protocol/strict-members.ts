import { z } from "zod";
import { findSlip } from "../util/text.ts";

/** An object that has no other members than these. What is unknown is refused, with what was probably meant. */
export function strictMembers<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== "unrecognized_keys") return undefined;
      return issue.keys.map((key: string) => describeUnknown(key, known)).join("; ");
    },
  });
}

function describeUnknown(key: string, known: readonly string[]): string {
  const meant = findSlip(key, known, key.length > 5 ? 3 : 2);
  const all = known.length === 0 ? "it takes nothing" : `there is ${known.join(", ")}`;
  const hint = meant === undefined ? all : `did you mean "${meant}"?`;
  return `there is no ${JSON.stringify(key.slice(0, 40))} here; ${hint}`;
}
