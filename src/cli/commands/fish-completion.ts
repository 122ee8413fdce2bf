import type { Option, Options } from "../kit/command.ts";

/** A command as shells complete it: its one or two words, what it does, and its options. */
export type CompletedCommand = { name: string; summary: string; options: Options };

/**
 * A script that has fish complete `x402-kit`: commands first, then the options of the command, each with what it means,
 * and files where an option takes one.
 */
export function renderFishCompletion(commands: readonly CompletedCommand[]): string {
  const secondsOf = Map.groupBy(
    commands.flatMap(({ name }) => (name.includes(" ") ? [name] : [])),
    (name) => name.split(" ")[0],
  );
  const names = new Set<string | undefined>(commands.map(({ name }) => name));
  const groups = [...secondsOf].filter(([first]) => !names.has(first));
  return [
    "function __x402_kit_words",
    "  set -l words (commandline -opc)",
    "  set -e words[1]",
    `  printf '%s\\n' "$words"`,
    "end",
    "complete -c x402-kit -f",
    ...groups.map(([first, seconds]) => {
      const words = seconds.map((name) => name.split(" ")[1]).join(", ");
      return offer("^$", `-a ${first}`, words);
    }),
    ...commands.flatMap(({ name, summary, options }) => {
      const [last = name, first = ""] = name.split(" ").reverse();
      // `fault list` has other options than `fault`.
      const others = secondsOf.get(name)?.map((second) => second.slice(name.length + 1)) ?? [];
      const after = others.length === 0 ? `^${name}( |$)` : `^${name}( (?!(${others.join("|")})( |$))|$)`;
      return [
        offer(`^${first}$`, `-a ${last}`, summary),
        ...Object.entries<Option>(options).flatMap(([key, option]) =>
          option.positional === true || option.isRest === true
            ? []
            : offer(after, `-l ${key}${describeValue(option)}`, option.describe),
        ),
        offer(after, "-l help", "print help"),
      ];
    }),
    offer("^$", "-l help", "print help"),
    offer("^$", "-l version", "print the version"),
  ].join("\n");
}

/** What follows an option: nothing, a file, or a value that fish cannot know. */
function describeValue({ placeholder, mayBeBare }: Option): string {
  if (placeholder === undefined || mayBeBare === true) return "";
  return placeholder === "FILE" ? " -r -F" : " -x";
}

/** @param where the words before the cursor, as a regular expression */
function offer(where: string, what: string, means: string): string {
  const condition = `__x402_kit_words | string match -qr -- ${quote(where)}`;
  return `complete -c x402-kit -n ${quote(condition)} ${what} -d ${quote(means)}`;
}

/** Between single quotes, fish reads a backslash and a quote after a backslash. */
const quote = (text: string) => `'${text.replace(/[\\']/g, "\\$&")}'`;
