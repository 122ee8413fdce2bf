/** What the judges of clients, shops and facilitators exit with. The worst that was found decides. */
export const judgeExitCodes = { good: 0, wrong: 1, differs: 2, notJudged: 3, usage: 4 } as const;

/** What they exit with where they cannot begin. */
export const judgeFailureCodes = { usage: judgeExitCodes.usage, failed: judgeExitCodes.notJudged };

/** The same for `--help`. */
export const judgeExitCodesText =
  "0 all is good; 1 something is wrong; 2 money and goods are right, but answers differ from what is due; 3 it could not be judged, or not to the end; 4 the command line is wrong. Reports are written in each case but the last.";
