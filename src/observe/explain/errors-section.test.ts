import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { mistakes } from "../../protocol/mistakes.ts";
import { errorsSection } from "./errors-section.ts";
import { problemAdvice } from "./problems.ts";
import { reasonAdvice } from "./reasons.ts";

test.each([mistakes, reasonAdvice, problemAdvice].flatMap((table) => Object.keys(table)))(
  "the link of %s leads to a section of its own",
  (name) => {
    const [file, anchor] = errorsSection(name).split("#");
    const page = readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8");
    const anchors = [...page.matchAll(/^(?:<a id="(.*)"><\/a>|### `(.*)`)$/gm)].map(
      ([, id, heading]) => id ?? heading,
    );
    expect(anchors.filter((one) => one === anchor)).toHaveLength(1);
  },
);
