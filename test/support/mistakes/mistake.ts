/** Where a user reads about a mistake. */
export type Door = "answer" | "up" | "why" | "why --json" | "explain" | "studio" | "buy" | "check";

/** Words that must occur at each door where a mistake is met, and words that would lead astray. */
export type Mistake = {
  /** What is wrong, with what was found. */
  cause: readonly RegExp[];
  /** What to do. */
  change: readonly RegExp[];
  never?: RegExp;
  /** What the answer of the protocol names, where that is the place and the rule alone. */
  answer?: readonly RegExp[];
  /** Doors that leave out what is only worth a look. */
  silent?: readonly Door[];
};
