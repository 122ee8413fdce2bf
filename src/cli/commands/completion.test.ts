import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { flag, option } from "../kit/command.ts";
import { type CompletedCommand, renderCompletion } from "./completion.ts";

const commands: readonly CompletedCommand[] = [
  {
    name: "up",
    summary: "start the chains",
    options: {
      json: flag("JSON"),
      host: option("ADDRESS", "the machine's \\ $name", { read: String }),
      state: option("FILE", "kept", { read: String }),
      command: option("COMMAND", "what is run", { read: String, isRest: true }),
    },
  },
  {
    name: "fault",
    summary: "cause a fault",
    options: {
      wei: flag("wei"),
      network: option("N", "n", { positional: true, read: String }),
    },
  },
  { name: "fault list", summary: "list them", options: { url: flag("url") } },
  { name: "org create", summary: "create one", options: { name: flag("name") } },
];
const script = renderCompletion("bash", commands);

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
    ["--json", "--host", "--state", "--help"],
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

/** Where fish is installed, if it is. */
const fish = process.env.PATH?.split(delimiter)
  .map((directory) => join(directory, "fish"))
  .find((path) => existsSync(path));

/** What fish offers after the words, of which the last one is being written: each with what it means. */
function completeInFish(path: string, ...words: readonly string[]): string[] {
  const program = `${renderCompletion("fish", commands)}\ncomplete -C 'x402-kit ${words.join(" ")}'`;
  return execFileSync(path, ["--no-config", "-c", program], { encoding: "utf8" }).split("\n").filter(Boolean);
}

const fishCases: [words: string[], offered: string[]][] = [
  [[""], ["fault\tcause a fault", "org\tcreate", "up\tstart the chains"]],
  [["u"], ["up\tstart the chains"]],
  [["--"], ["--help\tprint help", "--version\tprint the version"]],
  [["org", ""], ["create\tcreate one"]],
  [
    ["up", "--"],
    ["--help\tprint help", "--host\tthe machine's \\ $name", "--json\tJSON", "--state\tkept"],
  ],
  [
    ["fault", "base", "--"],
    ["--help\tprint help", "--wei\twei"],
  ],
  [
    ["fault", "list", "--"],
    ["--help\tprint help", "--url\turl"],
  ],
  [["org", "create", "--n"], ["--name\tname"]],
  [["up", "--json", "--ho"], ["--host\tthe machine's \\ $name"]],
  // A file is a file's name; for an address there is nothing to offer.
  [
    ["up", "--state", "packag"],
    ["package-lock.json", "package.json"],
  ],
  [["up", "--host", "packag"], []],
];
test.each(fish === undefined ? [] : fishCases)("fish completes %j", (words, offered) => {
  if (fish === undefined) throw new Error("fish is gone");
  expect(completeInFish(fish, ...words).sort()).toEqual(offered);
});

test("fish reads what is offered after which words", () => {
  const lines = renderCompletion("fish", commands).split("\n");
  const after = (where: string) =>
    `complete -c x402-kit -n '__x402_kit_words | string match -qr -- \\'${where}\\''`;
  expect(lines).toEqual(
    expect.arrayContaining([
      "complete -c x402-kit -f",
      `${after("^$")} -a up -d 'start the chains'`,
      `${after("^org$")} -a create -d 'create one'`,
      `${after("^up( |$)")} -l host -x -d 'the machine\\'s \\\\ $name'`,
      `${after("^up( |$)")} -l state -r -F -d 'kept'`,
      `${after("^fault( (?!(list)( |$))|$)")} -l wei -d 'wei'`,
    ]),
  );
});
