import { readOneOf } from "../../config/values.ts";
import { type Command, defineCommand, option } from "../kit/command.ts";
import { type CompletedCommand, renderFishCompletion } from "./fish-completion.ts";

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
    const names = Object.entries(options).flatMap(([key, { positional }]) =>
      positional === true ? [] : [`--${key}`],
    );
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
