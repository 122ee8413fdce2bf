/*
 * Programs for the judges that are alike but for what they decide. One that would decide everything as the good one does in a
 * case, does there what the good one does; so that it need not be run there to know its verdict.
 */

/** Makes a decision of a program, as the function says that a program makes it. */
export type Decide<Program> = <Choice>(choiceOf: (program: Program) => Choice) => Choice;

/** Called at each decision of a program, with what says whether another would decide otherwise there. */
export type OnDecision<Program> = (isOtherwise: (other: Program) => boolean) => void;

/** How a program decides. */
export function decisionsOf<Program>(program: Program, onDecision: OnDecision<Program>): Decide<Program> {
  return (choiceOf) => {
    const choice = choiceOf(program);
    onDecision((other) => choiceOf(other) !== choice);
    return choice;
  };
}

/** Finds out in which cases any of these programs would decide otherwise than the one that is watched. */
export function findDiffering<Program>(others: readonly Program[]) {
  const found = new Map(others.map((other) => [other, new Set<string>()]));
  return {
    /** Watches a program in the case of this name, for those that are like it. */
    watch:
      (name: string, isLike: (other: Program) => boolean = () => true): OnDecision<Program> =>
      (isOtherwise) => {
        for (const [other, names] of found) {
          if (!names.has(name) && isLike(other) && isOtherwise(other)) names.add(name);
        }
      },
    has: (program: Program, name: string) => found.get(program)?.has(name) === true,
  };
}
