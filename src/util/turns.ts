/** Does a piece of work when all that was asked for before is over, whatever became of that. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

/** Makes pieces of work wait for one another, in the order of the calls. */
export function createTurns(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work);
    last = turn.catch(() => {});
    return turn;
  };
}
