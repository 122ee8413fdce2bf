import { readFileSync } from "node:fs";
import { styleText } from "node:util";
import { escapeControlsInText } from "../../util/text.ts";

/** Where a command writes, and what it may know of the process around it. */
export type Terminal = {
  /** A line on stdout. */
  print(text: string): void;
  /** A line on stderr. */
  printError(text: string): void;
  /** True if what is printed may have colours; not by default. */
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

/** How a part of a line is to look. */
const looks = {
  strong: "bold",
  soft: "dim",
  good: "green",
  bad: "red",
  advice: "yellow",
} as const;

type Look = keyof typeof looks;

/**
 * Marks of a private plane of Unicode, and not the escape sequences of terminals: those are taken out of all that is printed,
 * since it may hold what others wrote. Such a text can colour itself at most.
 */
const firstMark = 0xf0000;
const end = String.fromCodePoint(firstMark);
const names = Object.keys(looks) as Look[];
const begin = (look: Look) => String.fromCodePoint(firstMark + 1 + names.indexOf(look));
const marked = /[\u{f0001}-\u{f0005}]([^\u{f0000}]*)\u{f0000}/gu;

/** Paints text: `paint.good("valid")`. The terminal shows it so where it has colours. */
export const paint = Object.fromEntries(
  names.map((look) => [look, (text: string) => `${begin(look)}${text}${end}`]),
) as Readonly<Record<Look, (text: string) => string>>;

/** A painted text for a terminal, or for what has no colours, such as a file. */
export function show(text: string, hasColours: boolean): string {
  return text.replace(marked, (whole, part: string) => {
    const look = names[(whole.codePointAt(0) ?? firstMark) - firstMark - 1];
    return hasColours && look !== undefined ? styleText(looks[look], part, { validateStream: false }) : part;
  });
}

/** Between two looks whether the parents are still there. */
const pollMs = 500;

/**
 * Calls `act` once this process has lost its parent, or that one its own: between npm and a command that it runs is a
 * shell, which SIGTERM to npm ends, and kill -9 does not. Does not keep the process running.
 *
 * @param parentOf for tests
 */
export function onParentEnd(act: () => void, parentOf = readParent): void {
  const { ppid } = process;
  let npm = parentOf(ppid);
  const timer = setInterval(() => {
    const parent = parentOf(ppid);
    npm ??= parent;
    // If that is unknown, nothing has ended: a process that may open no more files is not to stop serving.
    const hasChanged = parent !== undefined && parent !== npm;
    if (process.ppid === ppid && !hasChanged) return;
    clearInterval(timer);
    act();
  }, pollMs);
  timer.unref();
}

/** The parent of a process as Linux tells it: "" where there is no such process; undefined where that cannot be read. */
export function readParent(pid: number): string | undefined {
  try {
    // The name of the process is in brackets, and may hold any character.
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[1];
  } catch (error) {
    const code: unknown = Reflect.get(Object(error), "code");
    return code === "ENOENT" || code === "ESRCH" ? "" : undefined;
  }
}
