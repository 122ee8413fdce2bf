/** A stack trace of Node with its cause, and what the program said before it. */
const mostLines = 20;
const mostCharacters = 200;

/** The end of what a command printed, as hints below an error: enough that the error above a stack trace is there. */
export function lastLines(printed: readonly string[]): string[] {
  return printed
    .flatMap((text) => text.split("\n"))
    .filter((line) => line.trim() !== "")
    .slice(-mostLines)
    .map((line) => `  ${line.slice(0, mostCharacters)}`);
}
