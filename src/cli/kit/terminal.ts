import { readFileSync } from "node:fs";
import { styleText } from "node:util";
import { escapeControlsInText } from "../../util/text.ts";

/** The output of a command, and its view of the process around it. */
export type Terminal = {
  /** Prints a line on stdout. */
  print(text: string): void;
  /** Prints a line on stderr. */
  printError(text: string): void;
  /** True if output may be colored; false by default. */
  hasColours?: boolean;
  /** The variables; a file `.env` adds to them. */
  env: Record<string, string | undefined>;
  /**
   * Takes over the handling of Ctrl-C and SIGTERM, which otherwise end the process at once. The signal aborts with an
   * {@link Interruption}.
   */
  takeSignals(): AbortSignal;
};

/** The command was ended early by its user. */
export class Interruption extends Error {
  override readonly name = "Interruption";
}

/** The terminal for commands: their output may contain text from others, which must not control the terminal. */
export function withoutControls(terminal: Terminal): Terminal {
  return {
    ...terminal,
    print: (text) => terminal.print(show(escapeControlsInText(text), terminal.hasColours ?? false)),
    printError: (text) => terminal.printError(show(escapeControlsInText(text), false)),
  };
}

/** The styles for parts of a line. */
const looks = {
  strong: "bold",
  soft: "dim",
  good: "green",
  bad: "red",
  advice: "yellow",
} as const;

type Look = keyof typeof looks;

/**
 * Styles are marked by characters in a private plane of Unicode. Terminal escape sequences would not do: they are
 * removed from all output, which may contain text from others. Such a text can at most color itself.
 */
const firstMark = 0xf0000;
const end = String.fromCodePoint(firstMark);
const names = Object.keys(looks) as Look[];
const begin = (look: Look) => String.fromCodePoint(firstMark + 1 + names.indexOf(look));
const marked = /[\u{f0001}-\u{f0005}]([^\u{f0000}]*)\u{f0000}/gu;

/** Styles text: `paint.good("valid")`. The terminal shows the style if it has colors. */
export const paint = Object.fromEntries(
  names.map((look) => [look, (text: string) => `${begin(look)}${text}${end}`]),
) as Readonly<Record<Look, (text: string) => string>>;

/** Renders styled text for a terminal, or for an output without colors, such as a file. */
export function show(text: string, hasColours: boolean): string {
  return text.replace(marked, (whole, part: string) => {
    const look = names[(whole.codePointAt(0) ?? firstMark) - firstMark - 1];
    return hasColours && look !== undefined ? styleText(looks[look], part, { validateStream: false }) : part;
  });
}

/** The interval between two checks of the parents. */
const pollMs = 500;

/**
 * Calls `act` once this process has lost its parent or grandparent. npm runs a command through a shell: SIGTERM to npm
 * ends that shell too, kill -9 does not. Does not keep the process running.
 *
 * @param parentOf for tests
 */
export function onParentEnd(act: () => void, parentOf = readParent): void {
  const { ppid } = process;
  let npm = parentOf(ppid);
  const timer = setInterval(() => {
    const parent = parentOf(ppid);
    npm ??= parent;
    // If the parent cannot be read, assume nothing ended: a process out of file descriptors must not stop serving.
    const hasChanged = parent !== undefined && parent !== npm;
    if (process.ppid === ppid && !hasChanged) return;
    clearInterval(timer);
    act();
  }, pollMs);
  timer.unref();
}

/** The parent of a process, on Linux: "" if there is no such process; undefined if that cannot be read. */
export function readParent(pid: number): string | undefined {
  try {
    // The process name is in parentheses, and may contain any character.
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[1];
  } catch (error) {
    const code: unknown = Reflect.get(Object(error), "code");
    return code === "ENOENT" || code === "ESRCH" ? "" : undefined;
  }
}
