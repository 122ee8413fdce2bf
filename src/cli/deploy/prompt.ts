import { createInterface } from "node:readline/promises";
import { Interruption } from "../kit/command.ts";

/** Asks whoever sits at the terminal. Anything but yes is no. */
export async function askYesOrNo(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const interruption = new AbortController();
  // In a prompt Ctrl-C comes as a key.
  terminal.on("SIGINT", () => interruption.abort());
  try {
    const answer = await terminal.question(`${question} (yes/no) `, { signal: interruption.signal });
    return /^y(es)?$/i.test(answer.trim());
  } catch {
    throw new Interruption();
  } finally {
    terminal.close();
  }
}
