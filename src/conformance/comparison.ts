import type { Difference, FixtureAnswer } from "../fixtures/engine/answer.ts";

/** Where an answer differs from the expected one. */
export type Comparison = (expected: FixtureAnswer, actual: FixtureAnswer) => readonly Difference[];
