import type { SettlementFilter } from "../../ledger/ledger.ts";
import type { Cursor } from "../../protocol/cursor.ts";
import { usualPage } from "../../protocol/parse-settlement-query.ts";
import type { createSettlementQuerySchema } from "../../protocol/settlement-query.ts";
import { ProblemError } from "../problems/problem-error.ts";

/**
 * Reads the query of a listing.
 *
 * @throws ProblemError with everything that is wrong. A parameter that does not exist is wrong as well: ignored, a
 * filter with a typo would list everything.
 */
export function readSettlementQuery(
  query: unknown,
  schema: ReturnType<typeof createSettlementQuerySchema>,
): {
  filter: Omit<SettlementFilter, "organizationId">;
  page: { limit: number; after: Cursor | undefined };
} {
  const { data, error } = schema.safeParse(query);
  if (error !== undefined) {
    const problems = error.issues.map(({ path, message }) => [...path, message].join(" "));
    throw new ProblemError("malformed", problems.join("; "));
  }
  const { limit = usualPage, cursor: after, ...filter } = data;
  return { filter, page: { limit, after } };
}
