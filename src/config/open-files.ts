import { z } from "zod";
import type { ConfigurationProblem } from "../util/errors.ts";

const reportSchema = z.object({
  userLimits: z.object({ open_files: z.object({ soft: z.union([z.number(), z.string()]) }) }),
});

/** Files and connections besides those of settles: the database, nodes, logs, callers that verify. */
const besidesSettles = 256;

let known: { limit: number | undefined } | undefined;

/**
 * How many files and connections this process may have open at a time; undefined where that is not known. It is read once:
 * a report takes a millisecond, and each harness of a process asks.
 */
export function readOpenFileLimit(): number | undefined {
  known ??= { limit: readFromReport() };
  return known.limit;
}

function readFromReport(): number | undefined {
  const { report } = process;
  const before: unknown = Reflect.get(report, "excludeNetwork");
  // Looking up the names of the machine's addresses is the slow part of a report.
  Object.assign(report, { excludeNetwork: true });
  const limit = Number(reportSchema.safeParse(report.getReport()).data?.userLimits.open_files.soft);
  // Harnesses run in their users' processes, which may write reports of their own.
  Object.assign(report, { excludeNetwork: before });
  // "unlimited" is no number.
  return Number.isFinite(limit) ? limit : undefined;
}

/**
 * A warning when this process may not open as many connections as settles may wait at a time: each has one, and those
 * beyond would be cut off, not answered.
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
