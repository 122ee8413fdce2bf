import { readOneOf } from "../../config/values.ts";
import { type Command, defineCommand, type Option, type Options, option } from "../kit/command.ts";

/** A command as shells complete it: its one or two words, what it does, and its options. */
export type CompletedCommand = { name: string; summary: string; options: Options };

export const shells = ["bash", "zsh", "fish"] as const;

/**
 * A script that has a shell complete `x402-kit`: commands first, then the options of the command. zsh reads the
 * completions of bash.
 */
export function renderCompletion(
  shell: (typeof shells)[number],
  commands: readonly CompletedCommand[],
): string {
  if (shell === "fish") return renderFishCompletion(commands);
  const cases = commands.map(({ name, options }) => {
    const names = namedOf(options).map(([key]) => `--${key}`);
    return `    "${name}") words="${[...names, "--help"].join(" ")}" ;;`;
  });
  const groups = Map.groupBy(
    commands.filter(({ name }) => name.includes(" ")),
    ({ name }) => name.split(" ")[0],
  );
  const seconds = [...groups].map(
    ([first, members]) =>
      `    "${first}") words="${members.map(({ name }) => name.split(" ")[1]).join(" ")}" ;;`,
  );
  const firsts = [...new Set(commands.map(({ name }) => name.split(" ")[0]))].join(" ");
  return [
    ...(shell === "zsh" ? ["autoload -U +X bashcompinit && bashcompinit"] : []),
    "_x402_kit() {",
    `  local words="" one="\${COMP_WORDS[1]}" two="\${COMP_WORDS[1]} \${COMP_WORDS[2]}" current="\${COMP_WORDS[COMP_CWORD]}"`,
    `  [ "$COMP_CWORD" -eq 1 ] && words="${firsts} --help --version"`,
    '  [ "$COMP_CWORD" -eq 2 ] && case "$one" in',
    ...seconds,
    "  esac",
    '  if [ -z "$words" ] || [[ "$current" == -* ]]; then case "$one" in',
    ...cases.filter((line) => !/^ *"\S+ \S+"\)/.test(line)),
    "  esac; fi",
    '  case "$two" in',
    ...cases
      .filter((line) => /^ *"\S+ \S+"\)/.test(line))
      .map((line) => line.replace('words="', '[ "$COMP_CWORD" -gt 2 ] && words="')),
    "  esac",
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    "}",
    "complete -F _x402_kit x402-kit",
  ].join("\n");
}

/**
 * A script that has fish complete `x402-kit`: commands first, then the options of the command, each with what it means,
 * and files where an option takes one.
 */
function renderFishCompletion(commands: readonly CompletedCommand[]): string {
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
        ...namedOf(options).map(([key, option]) =>
          offer(after, `-l ${key}${describeValue(option)}`, option.describe),
        ),
        offer(after, "-l help", "print help"),
      ];
    }),
    offer("^$", "-l help", "print help"),
    offer("^$", "-l version", "print the version"),
  ].join("\n");
}

/** The options that are written with their names. */
function namedOf(options: Options): [key: string, Option][] {
  return Object.entries<Option>(options).filter(
    ([, { positional, isRest }]) => positional !== true && isRest !== true,
  );
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

/** @param list gives every command, which takes loading all of them */
export function createCompletionCommand(list: () => Promise<readonly CompletedCommand[]>): Command {
  return defineCommand({
    options: {
      shell: option("bash|zsh|fish", "for which shell", {
        read: readOneOf(shells),
        example: "bash",
        positional: true,
        required: true,
      }),
    },
    async run({ shell }, { print }) {
      print(renderCompletion(shell, await list()));
      return 0;
    },
  });
}
