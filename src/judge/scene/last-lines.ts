/** Enough for one of Node's stack traces with its cause, and the output before it. */
const mostLines = 20;
const mostCharacters = 200;

/** The end of a command's output, as hints below an error: enough to include the message above a stack trace. */
export function lastLines(printed: readonly string[]): string[] {
  return printed
    .flatMap((text) => text.split("\n"))
    .filter((line) => line.trim() !== "")
    .slice(-mostLines)
    .map((line) => `  ${line.slice(0, mostCharacters)}`);
}
