import { escapeControlsInText } from "../../util/text.ts";
import { show } from "./paint.ts";

/** Where a command writes, and what it may know of the process around it. */
export type Terminal = {
  /** A line on stdout. */
  print(text: string): void;
  /** A line on stderr. */
  printError(text: string): void;
  /** Whether what is printed may have colours; not by default. */
  hasColours?: boolean;
  /** The variables; a file `.env` adds to them. */
  env: Record<string, string | undefined>;
  /**
   * Takes over what Ctrl-C and SIGTERM do: without it they end the process at once. The signal aborts with an
   * {@link Interruption}.
   */
  takeSignals(): AbortSignal;
};

/** The command was cut short, as its user wished. */
export class Interruption extends Error {
  override readonly name = "Interruption";
}

/** The terminal as commands get it: what they print may hold what others wrote, and must not control the terminal. */
export function withoutControls(terminal: Terminal): Terminal {
  return {
    ...terminal,
    print: (text) => terminal.print(show(escapeControlsInText(text), terminal.hasColours ?? false)),
    printError: (text) => terminal.printError(show(escapeControlsInText(text), false)),
  };
}
