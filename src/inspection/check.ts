/**
 * - `ok`: as it should be;
 * - `warning`: works, but somebody should know;
 * - `failed`: `serve` would not be safe.
 */
export type CheckStatus = "ok" | "warning" | "failed";

/** One line of what `doctor` says. */
export type Check = {
  /** What was looked at, in a word or two. */
  name: string;
  status: CheckStatus;
  /** What was found. */
  detail: string;
  /** What to do about it. */
  advice?: string;
  /** Nothing that may pass: `serve` refuses to start with it. Only with `failed`. */
  fatal?: true;
};
