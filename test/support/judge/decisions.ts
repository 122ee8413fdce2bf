/*
 * Programs for the judges that differ only in their decisions. A program that would decide everything in a case as the
 * good one does would also behave like it, so its verdict is known without running it.
 */

/** Makes a decision of a program; the function returns the choice that a program would make. */
export type Decide<Program> = <Choice>(choiceOf: (program: Program) => Choice) => Choice;

/** Called at each decision of a program, with a function that returns true if another program would decide differently. */
export type OnDecision<Program> = (isOtherwise: (other: Program) => boolean) => void;

/** Creates the function with which a program makes its decisions. */
export function decisionsOf<Program>(program: Program, onDecision: OnDecision<Program>): Decide<Program> {
  return (choiceOf) => {
    const choice = choiceOf(program);
    onDecision((other) => choiceOf(other) !== choice);
    return choice;
  };
}

/** Finds the cases in which any of these programs would decide differently from the watched one. */
export function findDiffering<Program>(others: readonly Program[]) {
  const found = new Map(others.map((other) => [other, new Set<string>()]));
  return {
    /** Watches a program in the case with this name, on behalf of the others that are like it. */
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
