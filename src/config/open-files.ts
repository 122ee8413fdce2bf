import { z } from "zod";
import type { ConfigurationProblem } from "../util/errors.ts";

const reportSchema = z.object({
  userLimits: z.object({ open_files: z.object({ soft: z.union([z.number(), z.string()]) }) }),
});

/** Files and connections for everything but settles: the database, nodes, logs, callers of verify. */
const besidesSettles = 256;

let known: { limit: number | undefined } | undefined;

/**
 * Returns how many files and connections this process may have open at a time; undefined if unknown. Read only once,
 * because a report takes a millisecond and every harness in a process needs it.
 */
export function readOpenFileLimit(): number | undefined {
  known ??= { limit: readFromReport() };
  return known.limit;
}

function readFromReport(): number | undefined {
  const { report } = process;
  const before: unknown = Reflect.get(report, "excludeNetwork");
  // The slow part of a report is resolving the names of the machine's addresses.
  Object.assign(report, { excludeNetwork: true });
  const limit = Number(reportSchema.safeParse(report.getReport()).data?.userLimits.open_files.soft);
  // Restored, because harnesses run in their users' processes, which may write reports of their own.
  Object.assign(report, { excludeNetwork: before });
  // "unlimited" becomes NaN.
  return Number.isFinite(limit) ? limit : undefined;
}

/**
 * Returns a warning if this process may open fewer connections than settles may wait at a time: each has one, and
 * further ones would be cut off without a response.
 */
export function warnOfOpenFiles(
  maxSettles: number,
  limit: number | undefined = readOpenFileLimit(),
): ConfigurationProblem[] {
  const needed = maxSettles + besidesSettles;
  if (limit === undefined || limit >= needed) return [];
  const problem = `${maxSettles} settles may wait at a time, and this process may open ${limit} files and connections (ulimit -n): allow it ${needed} (LimitNOFILE in systemd, --ulimit nofile in Docker), or lower MAX_SETTLES`;
  return [{ name: "MAX_SETTLES", problem, example: String(Math.max(1, limit - besidesSettles)) }];
}
