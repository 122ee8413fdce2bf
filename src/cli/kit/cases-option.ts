import { InvalidValue, readList } from "../../config/values.ts";
import { nearest } from "../../util/text.ts";
import { option } from "./command.ts";

type Named = { readonly name: string };

/**
 * `--cases` of commands that judge: parts of the names of what is to run.
 *
 * @param known everything that can run; a part that none of their names contains is refused
 * @param kind what one of them is called
 */
export function casesOption(
  known: readonly Named[],
  { describe, example, kind }: { describe: string; example: string; kind: string },
) {
  return option("NAMES", describe, {
    example,
    read: readList("name", (text) => {
      if (known.some(({ name }) => name.includes(text))) return text;
      const names = known.map(({ name }) => name);
      const problem = `no ${kind}'s name contains "${text}"; the nearest are ${nearest(text, names, 3).join(", ")}`;
      throw new InvalidValue(problem);
    }),
  });
}

/** Those whose names contain one of the parts; all where none were given. */
export function chooseCases<C extends Named>(all: readonly C[], parts: readonly string[] | undefined): C[] {
  return parts === undefined ? [...all] : all.filter(({ name }) => parts.some((part) => name.includes(part)));
}
