import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { flag, option } from "../kit/command.ts";
import { renderCompletion } from "./completion.ts";

const script = renderCompletion("bash", [
  {
    name: "up",
    options: { json: flag("JSON"), host: option("ADDRESS", "where", { read: String }) },
  },
  {
    name: "fault",
    options: {
      wei: flag("wei"),
      network: option("N", "n", { positional: true, read: String }),
    },
  },
  { name: "fault list", options: { url: flag("url") } },
  { name: "org create", options: { name: flag("name") } },
]);

/** What bash offers after the words, of which the last one is being written. */
function complete(...words: readonly string[]): string[] {
  const line = ["x402-kit", ...words].map((word) => `'${word}'`).join(" ");
  const program = `${script}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length}; _x402_kit; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync("/bin/bash", ["-c", program], { encoding: "utf8" }).split("\n").filter(Boolean);
}

test.runIf(existsSync("/bin/bash")).each<[words: string[], offered: string[]]>([
  [[""], ["up", "fault", "org", "--help", "--version"]],
  [["u"], ["up"]],
  [["org", ""], ["create"]],
  [
    ["up", ""],
    ["--json", "--host", "--help"],
  ],
  [
    ["up", "--h"],
    ["--host", "--help"],
  ],
  [
    ["fault", "--"],
    ["--wei", "--help"],
  ],
  [
    ["fault", "list", "--"],
    ["--url", "--help"],
  ],
  [["org", "create", "--n"], ["--name"]],
  [["up", "--json", "--ho"], ["--host"]],
])("bash completes %j", (words, offered) => {
  expect(complete(...words)).toEqual(offered);
});

test("zsh reads the same by bashcompinit", () => {
  expect(renderCompletion("zsh", [])).toMatch(/^autoload -U \+X bashcompinit && bashcompinit\n_x402_kit\(\)/);
});
