/** The place where a user reads about a mistake. */
export type Door = "answer" | "up" | "why" | "why --json" | "explain" | "studio" | "buy" | "check";

/** Patterns that must match everywhere the mistake is reported, and ones that would mislead. */
export type Mistake = {
  /** What is wrong, with the value that was found. */
  cause: readonly RegExp[];
  /** What to do. */
  change: readonly RegExp[];
  never?: RegExp;
  /** What the protocol's response names, if that is only the place and the rule. */
  answer?: readonly RegExp[];
  /** Places that do not report it, because it is only worth a look. */
  silent?: readonly Door[];
};
