import { expect, test } from "vitest";
import { reasonTexts, textsOfChannels } from "../../protocol/catalogue-texts.ts";
import { mistakes } from "../../protocol/mistakes.ts";
import { problemKinds } from "../../protocol/problems.ts";
import { errorsPage } from "./errors-page.ts";

test("the page of errors has a section for every reason, problem and mistake, once", () => {
  const names = [
    ...Object.keys(reasonTexts),
    ...textsOfChannels.keys(),
    ...Object.keys(mistakes),
    ...Object.values(problemKinds).map(({ name }) => name),
  ];
  const page = errorsPage();
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  for (const name of names) expect(ids.filter((id) => id === name)).toEqual([name]);
  // Each link of the page leads somewhere.
  for (const [, target] of page.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(target);
  expect(page).not.toMatch(/\*\*|`|^\|/m);
});
