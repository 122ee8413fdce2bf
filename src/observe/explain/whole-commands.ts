import { self } from "../../util/self-command.ts";
import { type AdviceContext, optionsOf } from "./command-options.ts";

/**
 * An advice whose commands, between backticks, can be pasted: called as this command was, with the options that this payment
 * needs.
 */
export function withWholeCommands(advice: string, context: AdviceContext): string {
  return advice.replace(/`(x402-kit |up --)([^`]*)`/g, (_, first: string, rest: string) => {
    const words = first === "up --" ? `up --${rest}` : rest;
    return `\`${self} ${words}${optionsOf(words, context)}\``;
  });
}
