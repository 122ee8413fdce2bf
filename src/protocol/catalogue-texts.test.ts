import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { errorsSection, reasonTexts, textsOfChannels, withLocal, withoutLocal } from "./catalogue-texts.ts";
import { mistakes } from "./mistakes.ts";
import { problemTexts } from "./problems.ts";

const names = [mistakes, reasonTexts, problemTexts].flatMap((table) => Object.keys(table));

test.each([...names, ...textsOfChannels.keys()])("the link of %s leads to a section of its own", (name) => {
  const [file, anchor] = errorsSection(name).split("#");
  const page = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
  const anchors = [...page.matchAll(/^(?:<a id="(.*)"><\/a>|### `(.*)`)$/gm)].map(
    ([, id, heading]) => id ?? heading,
  );
  expect(anchors.filter((one) => one === anchor)).toHaveLength(1);
});

test("an advice is the same once the command for a local chain is taken out again", () => {
  expect(withoutLocal(withLocal("Fund the `payer`.", "x402-kit fund"))).toBe("Fund the `payer`.");
  expect(withoutLocal(withLocal("Fund the `payer`.", undefined))).toBe("Fund the `payer`.");
});
