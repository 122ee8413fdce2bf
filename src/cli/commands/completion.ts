import { readOneOf } from "../../config/values.ts";
import { type Command, defineCommand, valueOption } from "../kit/command.ts";
import { type CompletedCommand, renderCompletion, shells } from "../kit/completion.ts";

/** @param list gives every command, which takes loading all of them */
export function createCompletionCommand(list: () => Promise<readonly CompletedCommand[]>): Command {
  return defineCommand({
    options: {
      shell: {
        ...valueOption("for which shell", "bash|zsh", "bash", readOneOf(shells)),
        positional: true,
        required: true,
      },
    },
    async run({ shell }, { print }) {
      print(renderCompletion(shell, await list()));
      return 0;
    },
  });
}
